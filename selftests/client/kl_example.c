// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <klocks.h>

static DEFINE_KL_RWSEM(sem);
static int value;

static int __init example_init(void)
{
	scoped_guard(kl_rwsem_write, &sem)
		value = 42;
	scoped_guard(kl_rwsem_read, &sem)
		pr_info("kl_example: the value is %d\n", value);
	return 0;
}
module_init(example_init);

static void __exit example_exit(void) { }
module_exit(example_exit);
MODULE_DESCRIPTION("Shows how a module uses klocks");
MODULE_LICENSE("GPL");
