// SPDX-License-Identifier: GPL-2.0
/*
 * Does the one wrong thing that the parameter `fault` names, for lockdep, the
 * hung-task detector or the locks' own checks to report: see scripts/splats.
 * Nothing stays deadlocked: where a task would wait for itself, a signal ends the
 * wait.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <klocks.h>

static char *fault;
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "what to do wrong");

static DEFINE_KL_RWSEM(splat_rwsem);
static DEFINE_KL_RWSEM_XADD(splat_rwsem_xadd);
static struct kl_percpu_rwsem splat_percpu;
static DEFINE_MUTEX(splat_mutex);

/* Ends all killable waits of this task. */
static void be_killed(void)
{
	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
}

static void self_deadlock(void)
{
	be_killed();
	kl_down_write(&splat_rwsem);
	if (!kl_down_write_killable(&splat_rwsem))
		kl_up_write(&splat_rwsem);
	kl_up_write(&splat_rwsem);
}

static void self_deadlock_xadd(void)
{
	be_killed();
	kl_down_write(&splat_rwsem_xadd);
	if (!kl_down_write_killable(&splat_rwsem_xadd))
		kl_up_write(&splat_rwsem_xadd);
	kl_up_write(&splat_rwsem_xadd);
}

static void read_in_write(void)
{
	be_killed();
	kl_down_write(&splat_rwsem);
	if (!kl_down_read_killable(&splat_rwsem))
		kl_up_read(&splat_rwsem);
	kl_up_write(&splat_rwsem);
}

static void abba(void)
{
	kl_down_read(&splat_rwsem);
	mutex_lock(&splat_mutex);
	mutex_unlock(&splat_mutex);
	kl_up_read(&splat_rwsem);

	mutex_lock(&splat_mutex);
	kl_down_write(&splat_rwsem);
	kl_up_write(&splat_rwsem);
	mutex_unlock(&splat_mutex);
}

static void abba_percpu(void)
{
	kl_percpu_down_read(&splat_percpu);
	mutex_lock(&splat_mutex);
	mutex_unlock(&splat_mutex);
	kl_percpu_up_read(&splat_percpu);

	mutex_lock(&splat_mutex);
	kl_percpu_down_write(&splat_percpu);
	kl_percpu_up_write(&splat_percpu);
	mutex_unlock(&splat_mutex);
}

static int up_read_here(void *given_up)
{
	kl_up_read(&splat_rwsem);
	complete(given_up);
	return 0;
}

static int up_write_here(void *given_up)
{
	kl_up_write(&splat_rwsem);
	complete(given_up);
	return 0;
}

/* Has another task do `up`, which gives up what this one holds. */
static void by_other(int (*up)(void *))
{
	DECLARE_COMPLETION_ONSTACK(given_up);
	struct task_struct *task = kthread_create(up, &given_up, "kl_splat_other");

	if (IS_ERR(task))
		return;
	get_task_struct(task);
	wake_up_process(task);
	wait_for_completion(&given_up);
	kthread_stop(task);
	put_task_struct(task);
}

static void other_task(void)
{
	kl_down_read(&splat_rwsem);
	by_other(up_read_here);
}

static void not_the_owner(void)
{
	kl_down_write(&splat_rwsem);
	by_other(up_write_here);
}

static void asleep_in_atomic(void)
{
	preempt_disable();
	kl_down_read(&splat_rwsem);
	kl_up_read(&splat_rwsem);
	preempt_enable();
}

static int waiter(void *unused)
{
	kl_down_read(&splat_rwsem);
	kl_up_read(&splat_rwsem);
	return 0;
}

/* Longer than the detector, set to 1 s, takes to look twice. */
static void hung(void)
{
	struct task_struct *task = kthread_create(waiter, NULL, "kl_splat_waits");

	if (IS_ERR(task))
		return;
	get_task_struct(task);
	kl_down_write(&splat_rwsem);
	wake_up_process(task);
	schedule_timeout_idle(5 * HZ);
	kl_up_write(&splat_rwsem);
	kthread_stop(task);
	put_task_struct(task);
}

static const struct {
	const char *name;
	void (*commit)(void);
} faults[] = {
	{ "self_deadlock", self_deadlock },
	{ "self_deadlock_xadd", self_deadlock_xadd },
	{ "read_in_write", read_in_write },
	{ "abba", abba },
	{ "abba_percpu", abba_percpu },
	{ "other_task", other_task },
	{ "not_the_owner", not_the_owner },
	{ "asleep_in_atomic", asleep_in_atomic },
	{ "hung", hung },
};

static DECLARE_COMPLETION(done);

static int culprit(void *index)
{
	faults[(long)index].commit();
	complete(&done);
	return 0;
}

static int __init splat_init(void)
{
	struct task_struct *task;
	long i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (fault && !strcmp(fault, faults[i].name))
			break;
	if (i == ARRAY_SIZE(faults))
		return -EINVAL;
	if (kl_percpu_init_rwsem(&splat_percpu))
		return -ENOMEM;
	task = kthread_create(culprit, (void *)i, "kl_splat");
	if (IS_ERR(task)) {
		kl_percpu_free_rwsem(&splat_percpu);
		return PTR_ERR(task);
	}
	get_task_struct(task);
	wake_up_process(task);
	/* The detector is to find the waiter, not this task. */
	wait_for_completion_state(&done, TASK_IDLE);
	kthread_stop(task);
	put_task_struct(task);
	return 0;
}
module_init(splat_init);

static void __exit splat_exit(void)
{
	kl_percpu_free_rwsem(&splat_percpu);
}
module_exit(splat_exit);

MODULE_DESCRIPTION("Provokes reports of lockdep");
MODULE_LICENSE("GPL");
