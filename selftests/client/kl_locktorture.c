// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's locktorture with rwsem_lock and percpu_rwsem_lock pointed at the
 * locks of klocks. Kbuild names its source, in the kernel's tree, by LOCKTORTURE.
 */
#include <linux/percpu-rwsem.h>
#include <linux/rwsem.h>
#include <klocks.h>

#ifndef LOCKTORTURE_DEFINE_RWSEM
#define LOCKTORTURE_DEFINE_RWSEM DEFINE_KL_RWSEM
#endif

#undef DECLARE_RWSEM
#define DECLARE_RWSEM LOCKTORTURE_DEFINE_RWSEM
#define down_read kl_down_read
#define up_read kl_up_read
#define down_write kl_down_write
#define up_write kl_up_write

#define percpu_rw_semaphore kl_percpu_rwsem
#undef percpu_init_rwsem
#define percpu_init_rwsem kl_percpu_init_rwsem
#define percpu_free_rwsem kl_percpu_free_rwsem
#define percpu_down_read kl_percpu_down_read
#define percpu_up_read kl_percpu_up_read
#define percpu_down_write kl_percpu_down_write
#define percpu_up_write kl_percpu_up_write

#include LOCKTORTURE
