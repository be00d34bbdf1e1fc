// SPDX-License-Identifier: GPL-2.0
/*
 * A client in C: every function of include/klocks.h, alone and between threads,
 * as KUnit cases. client.sh loads it and reads the results.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <klocks.h>

/* A thread that is gone, its last instruction included, when it was joined. */

static struct task_struct *thread_start(int (*fn)(void *), void *data)
{
	struct task_struct *task = kthread_create(fn, data, "kl_client");

	if (IS_ERR(task))
		return NULL;
	get_task_struct(task);
	wake_up_process(task);
	return task;
}

/* Only when it has told that it runs: one that is stopped before never does. */
static void thread_join(struct task_struct *task)
{
	kthread_stop(task);
	put_task_struct(task);
}

/* Threads that do the same at once. */

#define THREADS 4

struct crew {
	void (*work)(void *context);
	void *context;
	struct completion start, done;
};

static int crew_member(void *data)
{
	struct crew *crew = data;

	wait_for_completion(&crew->start);
	crew->work(crew->context);
	complete(&crew->done);
	return 0;
}

static void crew_run(struct kunit *test, void (*work)(void *), void *context)
{
	struct crew crew = { .work = work, .context = context };
	struct task_struct *tasks[THREADS];
	int i, started = 0;

	init_completion(&crew.start);
	init_completion(&crew.done);
	for (i = 0; i < THREADS; i++) {
		tasks[started] = thread_start(crew_member, &crew);
		started += !!tasks[started];
	}
	KUNIT_EXPECT_EQ(test, started, THREADS);
	complete_all(&crew.start);
	for (i = 0; i < started; i++)
		wait_for_completion(&crew.done);
	for (i = 0; i < started; i++)
		thread_join(tasks[i]);
}

/* What a lock protects: a plain count, which is wrong if two writers meet. */
#define ROUNDS 2000

struct counted {
	int value;
	atomic_t torn;
	union {
		struct kl_rwsem kl_rwsem;
		struct kl_rwsem_xadd kl_rwsem_xadd;
		struct kl_percpu_rwsem percpu;
		struct kl_lockref ref;
	};
};

/* A reader in each thread sees two loads, with time between, agree. */
static void counted_look(struct counted *c)
{
	int before = READ_ONCE(c->value);

	cpu_relax();
	if (before != READ_ONCE(c->value))
		atomic_inc(&c->torn);
}

static void counted_add(struct counted *c)
{
	int before = READ_ONCE(c->value);

	cpu_relax();
	WRITE_ONCE(c->value, before + 1);
}

static void counted_check(struct kunit *test, struct counted *c, int rounds)
{
	KUNIT_EXPECT_EQ(test, c->value, THREADS * rounds);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->torn), 0);
}

/* What a killed task gets of each function that a signal ends. */
struct waits {
	void *sem;
	int result[5];
	struct completion done;
};

/* Both read-write semaphores: the same source, another type. */
#define RWSEM_CASES(type, DEFINE)						\
static DEFINE(type##_static);								\
											\
static void type##_alone(struct kunit *test)						\
{											\
	struct type made, *sem = &made;							\
	int i;										\
											\
	kl_init_rwsem(sem);								\
	for (i = 0; i < 2; i++, sem = &type##_static) {					\
		KUNIT_EXPECT_FALSE(test, kl_is_locked(sem));				\
		kl_down_read(sem);							\
		KUNIT_EXPECT_TRUE(test, kl_is_locked(sem));				\
		KUNIT_EXPECT_FALSE(test, kl_down_write_trylock(sem));			\
		kl_up_read(sem);							\
		KUNIT_ASSERT_TRUE(test, kl_down_read_trylock(sem));			\
		kl_up_read(sem);							\
		KUNIT_ASSERT_EQ(test, kl_down_read_interruptible(sem), 0);		\
		kl_up_read(sem);							\
		KUNIT_ASSERT_EQ(test, kl_down_read_killable(sem), 0);			\
		kl_up_read(sem);							\
		kl_down_read_nested(sem, SINGLE_DEPTH_NESTING);				\
		kl_up_read(sem);							\
		KUNIT_ASSERT_EQ(test, kl_down_read_killable_nested(sem, 1), 0);		\
		kl_up_read(sem);							\
		kl_down_read_non_owner(sem);						\
		KUNIT_EXPECT_FALSE(test, kl_down_write_trylock(sem));			\
		kl_up_read_non_owner(sem);						\
											\
		kl_down_write(sem);							\
		lockdep_assert_held_write(sem);						\
		KUNIT_EXPECT_FALSE(test, kl_down_read_trylock(sem));			\
		KUNIT_EXPECT_FALSE(test, kl_is_contended(sem));				\
		kl_downgrade_write(sem);						\
		lockdep_assert_held_read(sem);						\
		kl_up_read(sem);							\
		KUNIT_ASSERT_EQ(test, kl_down_write_killable(sem), 0);			\
		kl_up_write(sem);							\
		KUNIT_ASSERT_TRUE(test, kl_down_write_trylock(sem));			\
		kl_up_write(sem);							\
		kl_down_write_nested(sem, SINGLE_DEPTH_NESTING);			\
		kl_up_write(sem);							\
		KUNIT_ASSERT_EQ(test, kl_down_write_killable_nested(sem, 1), 0);	\
		kl_up_write(sem);							\
		KUNIT_EXPECT_FALSE(test, kl_is_locked(sem));				\
	}										\
}											\
											\
static void type##_guards(struct kunit *test)						\
{											\
	struct type sem;								\
	int entered = 0;								\
											\
	kl_init_rwsem(&sem);								\
	scoped_guard(type##_write, &sem) {						\
		scoped_guard(type##_read_try, &sem)					\
			entered++;							\
		scoped_guard(type##_write_try, &sem)					\
			entered++;							\
	}										\
	KUNIT_EXPECT_EQ(test, entered, 0);						\
	scoped_guard(type##_read, &sem)							\
		scoped_guard(type##_write_try, &sem)					\
			entered++;							\
	KUNIT_EXPECT_EQ(test, entered, 0);						\
	scoped_guard(type##_read_intr, &sem)						\
		entered++;								\
	scoped_guard(type##_write_kill, &sem)						\
		entered++;								\
	KUNIT_EXPECT_EQ(test, entered, 2);						\
	KUNIT_EXPECT_FALSE(test, kl_is_locked(&sem));					\
}											\
											\
static void type##_work(void *context)							\
{											\
	struct counted *c = context;							\
	int i;										\
											\
	for (i = 0; i < ROUNDS; i++) {							\
		kl_down_write(&c->type);						\
		counted_add(c);								\
		if (i % 2) {								\
			kl_downgrade_write(&c->type);					\
			counted_look(c);						\
			kl_up_read(&c->type);						\
		} else {								\
			kl_up_write(&c->type);					\
		}									\
		kl_down_read(&c->type);						\
		counted_look(c);							\
		kl_up_read(&c->type);							\
	}										\
}											\
											\
static void type##_excludes(struct kunit *test)						\
{											\
	struct counted *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);		\
											\
	KUNIT_ASSERT_NOT_NULL(test, c);							\
	kl_init_rwsem(&c->type);							\
	crew_run(test, type##_work, c);							\
	counted_check(test, c, ROUNDS);							\
	KUNIT_EXPECT_FALSE(test, kl_is_locked(&c->type));				\
}											\
											\
static int type##_killed(void *data)							\
{											\
	struct waits *waits = data;							\
	struct type *sem = waits->sem;							\
											\
	allow_signal(SIGKILL);								\
	send_sig(SIGKILL, current, 1);							\
	waits->result[0] = kl_down_read_interruptible(sem);				\
	waits->result[1] = kl_down_read_killable(sem);					\
	waits->result[2] = kl_down_write_killable(sem);					\
	waits->result[3] = kl_down_read_killable_nested(sem, 1);			\
	waits->result[4] = kl_down_write_killable_nested(sem, 1);			\
	complete(&waits->done);								\
	return 0;									\
}											\
											\
static void type##_signals(struct kunit *test)						\
{											\
	struct waits waits = { };							\
	struct task_struct *task;							\
	struct type sem;								\
	int i;										\
											\
	kl_init_rwsem(&sem);								\
	waits.sem = &sem;								\
	init_completion(&waits.done);							\
	kl_down_write(&sem);								\
	task = thread_start(type##_killed, &waits);					\
	if (task) {									\
		wait_for_completion(&waits.done);					\
		thread_join(task);							\
	}										\
	kl_up_write(&sem);								\
	for (i = 0; i < ARRAY_SIZE(waits.result); i++)					\
		KUNIT_EXPECT_EQ(test, waits.result[i], -EINTR);				\
	KUNIT_EXPECT_FALSE(test, kl_is_locked(&sem));					\
}

RWSEM_CASES(kl_rwsem, DEFINE_KL_RWSEM)
RWSEM_CASES(kl_rwsem_xadd, DEFINE_KL_RWSEM_XADD)

static void lockref_alone(struct kunit *test)
{
	struct kl_lockref ref;

	kl_lockref_init(&ref);
	KUNIT_EXPECT_EQ(test, kl_lockref_count(&ref), 1);
	kl_lockref_get(&ref);
	KUNIT_EXPECT_TRUE(test, kl_lockref_get_not_zero(&ref));
	KUNIT_EXPECT_TRUE(test, kl_lockref_get_not_dead(&ref));
	KUNIT_EXPECT_EQ(test, kl_lockref_count(&ref), 4);
	KUNIT_EXPECT_EQ(test, kl_lockref_put_return(&ref), 3);
	KUNIT_EXPECT_TRUE(test, kl_lockref_put_or_lock(&ref));
	KUNIT_EXPECT_TRUE(test, kl_lockref_put_or_lock(&ref));

	KUNIT_ASSERT_FALSE(test, kl_lockref_put_or_lock(&ref));
	KUNIT_EXPECT_FALSE(test, kl_lockref_trylock(&ref));
	KUNIT_EXPECT_EQ(test, kl_lockref_put_return(&ref), -1);
	kl_lockref_set_count(&ref, 0);
	KUNIT_EXPECT_TRUE(test, kl_lockref_is_dead_or_zero(&ref));
	kl_lockref_unlock(&ref);
	KUNIT_EXPECT_FALSE(test, kl_lockref_get_not_zero(&ref));
	KUNIT_EXPECT_FALSE(test, kl_lockref_is_dead(&ref));

	kl_lockref_lock(&ref);
	lockdep_assert_held(&ref);
	kl_lockref_mark_dead(&ref);
	kl_lockref_unlock(&ref);
	KUNIT_EXPECT_TRUE(test, kl_lockref_is_dead(&ref));
	KUNIT_EXPECT_FALSE(test, kl_lockref_get_not_dead(&ref));
	KUNIT_ASSERT_TRUE(test, kl_lockref_trylock(&ref));
	kl_lockref_unlock(&ref);
}

static void lockref_work(void *context)
{
	struct counted *c = context;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		kl_lockref_get(&c->ref);
		kl_lockref_lock(&c->ref);
		counted_add(c);
		kl_lockref_unlock(&c->ref);
		/* Not the last: the test has one. */
		if (!kl_lockref_put_or_lock(&c->ref)) {
			atomic_inc(&c->torn);
			kl_lockref_unlock(&c->ref);
		}
	}
}

static void lockref_counts(struct kunit *test)
{
	struct counted *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	kl_lockref_init(&c->ref);
	crew_run(test, lockref_work, c);
	counted_check(test, c, ROUNDS);
	KUNIT_EXPECT_EQ(test, kl_lockref_count(&c->ref), 1);
}

static bool idle(struct kl_rcu_sync *rss)
{
	guard(rcu)();
	return kl_rcu_sync_is_idle(rss);
}

static void rcu_sync_alone(struct kunit *test)
{
	struct kl_rcu_sync *rss = kunit_kzalloc(test, sizeof(*rss), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rss);
	kl_rcu_sync_init(rss);
	KUNIT_EXPECT_TRUE(test, idle(rss));
	kl_rcu_sync_enter(rss);
	KUNIT_EXPECT_FALSE(test, idle(rss));
	kl_rcu_sync_enter(rss);
	kl_rcu_sync_exit(rss);
	KUNIT_EXPECT_FALSE(test, idle(rss));
	kl_rcu_sync_exit(rss);
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, idle(rss));

	kl_rcu_sync_enter_nowait(rss);
	KUNIT_EXPECT_FALSE(test, idle(rss));
	kl_rcu_sync_wait(rss);
	kl_rcu_sync_exit(rss);
	/* With a callback pending. */
	kl_rcu_sync_dtor(rss);
}

static void percpu_alone(struct kunit *test)
{
	struct kl_percpu_rwsem *sem = kunit_kzalloc(test, sizeof(*sem), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, sem);
	/* Zeroed memory can be freed. */
	kl_percpu_free_rwsem(sem);
	KUNIT_ASSERT_EQ(test, kl_percpu_init_rwsem(sem), 0);
	/* Readers on the fast path, then on the slow one. */
	for (i = 0; i < 2; i++) {
		kl_percpu_down_read(sem);
		KUNIT_EXPECT_TRUE(test, kl_percpu_is_read_locked(sem));
		lockdep_assert_held_read(sem);
		kl_percpu_up_read(sem);
		kl_percpu_down_read_freezable(sem);
		kl_percpu_up_read(sem);
		KUNIT_ASSERT_TRUE(test, kl_percpu_down_read_trylock(sem));
		kl_percpu_up_read(sem);
		KUNIT_EXPECT_FALSE(test, kl_percpu_is_read_locked(sem));

		kl_percpu_down_write(sem);
		lockdep_assert_held_write(sem);
		KUNIT_EXPECT_TRUE(test, kl_percpu_is_write_locked(sem));
		KUNIT_EXPECT_FALSE(test, kl_percpu_down_read_trylock(sem));
		kl_percpu_rwsem_release(sem);
		kl_percpu_rwsem_acquire(sem, true);
		kl_percpu_up_write(sem);
		KUNIT_EXPECT_FALSE(test, kl_percpu_is_write_locked(sem));
	}
	kl_percpu_free_rwsem(sem);
	kl_percpu_free_rwsem(sem);
}

static void percpu_guards(struct kunit *test)
{
	struct kl_percpu_rwsem *sem = kunit_kzalloc(test, sizeof(*sem), GFP_KERNEL);
	int entered = 0;

	KUNIT_ASSERT_NOT_NULL(test, sem);
	KUNIT_ASSERT_EQ(test, kl_percpu_init_rwsem(sem), 0);
	scoped_guard(kl_percpu_write, sem)
		scoped_guard(kl_percpu_read_try, sem)
			entered++;
	KUNIT_EXPECT_EQ(test, entered, 0);
	scoped_guard(kl_percpu_read, sem)
		entered++;
	KUNIT_EXPECT_EQ(test, entered, 1);
	KUNIT_EXPECT_FALSE(test, kl_percpu_is_read_locked(sem));
	kl_percpu_free_rwsem(sem);
}

/* Fewer rounds: each write may wait for a grace period. */
#define PERCPU_ROUNDS 50

static void percpu_work(void *context)
{
	struct counted *c = context;
	int i, j;

	for (i = 0; i < PERCPU_ROUNDS; i++) {
		kl_percpu_down_write(&c->percpu);
		counted_add(c);
		kl_percpu_up_write(&c->percpu);
		for (j = 0; j < 20; j++) {
			kl_percpu_down_read(&c->percpu);
			counted_look(c);
			kl_percpu_up_read(&c->percpu);
		}
	}
}

static void percpu_excludes(struct kunit *test)
{
	struct counted *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_EQ(test, kl_percpu_init_rwsem(&c->percpu), 0);
	crew_run(test, percpu_work, c);
	counted_check(test, c, PERCPU_ROUNDS);
	kl_percpu_free_rwsem(&c->percpu);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(kl_rwsem_alone),
	KUNIT_CASE(kl_rwsem_guards),
	KUNIT_CASE(kl_rwsem_excludes),
	KUNIT_CASE(kl_rwsem_signals),
	KUNIT_CASE(kl_rwsem_xadd_alone),
	KUNIT_CASE(kl_rwsem_xadd_guards),
	KUNIT_CASE(kl_rwsem_xadd_excludes),
	KUNIT_CASE(kl_rwsem_xadd_signals),
	KUNIT_CASE(lockref_alone),
	KUNIT_CASE(lockref_counts),
	KUNIT_CASE(rcu_sync_alone),
	KUNIT_CASE(percpu_alone),
	KUNIT_CASE(percpu_guards),
	KUNIT_CASE(percpu_excludes),
	{ }
};

static struct kunit_suite suite = {
	.name = "kl_client",
	.test_cases = cases,
};

kunit_test_suites(&suite);

MODULE_DESCRIPTION("Tests klocks from C");
MODULE_LICENSE("GPL");
