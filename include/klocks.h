/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The locks of klocks.ko for modules in C. All is exported to GPL modules.
 *
 * Build with -I to this directory and with KBUILD_EXTRA_SYMBOLS set to the
 * Module.symvers of klocks.ko. Names and meaning are those of the kernel's own
 * locks with kl_ in front; where something differs, it is said here. The
 * structures are to be embedded in one's own and their members to be left
 * alone, but for @dep_map, which lockdep_assert_held() and its kin look for.
 */
#ifndef KLOCKS_H
#define KLOCKS_H

#include <linux/cleanup.h>
#include <linux/lockdep.h>
#include <linux/rcupdate.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>
#include <linux/wait.h>

/*
 * Read-write semaphores. Two locks with one interface: which one is meant, the
 * type of the argument says. In place of a second set of names there is
 * _Generic, so a lock is replaced by the other in its declaration alone.
 */

/**
 * struct kl_rwsem - read-write semaphore with handoff
 * @dep_map: the lock as lockdep knows it; empty without lockdep
 *
 * As the kernel's struct rw_semaphore: readers share, writers exclude, and a
 * waiter that was passed over for 4 ms is promised the lock. Made by
 * kl_init_rwsem() or DEFINE_KL_RWSEM(). Nothing is to be freed.
 */
struct kl_rwsem {
	/* private: */
	u64 count;
	u64 owner;
	u32 osq;
	raw_spinlock_t wait_lock;
	void *first;
	/* public: */
	struct lockdep_map dep_map;
};

/**
 * struct kl_rwsem_xadd - read-write semaphore of 2014
 * @dep_map: the lock as lockdep knows it; empty without lockdep
 *
 * The lock of the series "enable reader opt-spinning & writer respin", with all
 * of it that review did not reject. Spinners may overtake sleepers for good.
 * Made by kl_init_rwsem() or DEFINE_KL_RWSEM_XADD(). Nothing is to be freed.
 */
struct kl_rwsem_xadd {
	/* private: */
	u64 count;
	u64 owner;
	u32 osq;
	raw_spinlock_t wait_lock;
	void *first;
	/* public: */
	struct lockdep_map dep_map;
};

#ifdef CONFIG_DEBUG_LOCK_ALLOC
#define __KL_DEP_MAP(lockname) \
	.dep_map = { .name = lockname, .wait_type_inner = LD_WAIT_SLEEP },
#else
#define __KL_DEP_MAP(lockname)
#endif

#define __KL_RWSEM_INITIALIZER(lockname) {				\
	.wait_lock = __RAW_SPIN_LOCK_UNLOCKED(wait_lock),		\
	__KL_DEP_MAP(lockname)						\
}

/**
 * DEFINE_KL_RWSEM() - define a free struct kl_rwsem of static storage
 * @sem: name of the variable, and of the lock in lockdep's reports
 */
#define DEFINE_KL_RWSEM(sem) struct kl_rwsem sem = __KL_RWSEM_INITIALIZER(#sem)

/**
 * DEFINE_KL_RWSEM_XADD() - define a free struct kl_rwsem_xadd of static storage
 * @sem: name of the variable, and of the lock in lockdep's reports
 */
#define DEFINE_KL_RWSEM_XADD(sem) struct kl_rwsem_xadd sem = __KL_RWSEM_INITIALIZER(#sem)

#define __KL_RWSEM_FUNCTIONS(type)							\
	void type##_init(struct type *sem, const char *name, struct lock_class_key *key); \
	void type##_down_read(struct type *sem);					\
	int __must_check type##_down_read_interruptible(struct type *sem);		\
	int __must_check type##_down_read_killable(struct type *sem);			\
	bool __must_check type##_down_read_trylock(struct type *sem);			\
	void type##_down_read_nested(struct type *sem, unsigned int subclass);		\
	int __must_check type##_down_read_killable_nested(struct type *sem,		\
							  unsigned int subclass);	\
	void type##_down_read_non_owner(struct type *sem);				\
	void type##_up_read(struct type *sem);						\
	void type##_up_read_non_owner(struct type *sem);				\
	void type##_down_write(struct type *sem);					\
	int __must_check type##_down_write_killable(struct type *sem);			\
	bool __must_check type##_down_write_trylock(struct type *sem);			\
	void type##_down_write_nested(struct type *sem, unsigned int subclass);		\
	int __must_check type##_down_write_killable_nested(struct type *sem,		\
							   unsigned int subclass);	\
	void type##_up_write(struct type *sem);						\
	void type##_downgrade_write(struct type *sem);					\
	bool type##_is_locked(struct type *sem);					\
	bool type##_is_contended(struct type *sem)

__KL_RWSEM_FUNCTIONS(kl_rwsem);
__KL_RWSEM_FUNCTIONS(kl_rwsem_xadd);

/* The function OP of the lock to which @type is a pointer. */
#define __kl_rwsem(op, type) _Generic(*(type)NULL,			\
	struct kl_rwsem : kl_rwsem_##op,				\
	struct kl_rwsem_xadd : kl_rwsem_xadd_##op)

/**
 * kl_init_rwsem() - make a free semaphore
 * @sem: where; a struct kl_rwsem or kl_rwsem_xadd that nobody uses
 *
 * All locks made at one place in the source are one class to lockdep.
 */
#define kl_init_rwsem(sem)						\
do {									\
	static struct lock_class_key __key;				\
									\
	__kl_rwsem(init, typeof(sem))(sem, #sem, &__key);			\
} while (0)

/**
 * kl_down_read() - take a semaphore for reading
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Process context. Sleeps; no signal ends that. The task must not
 * hold @sem already, also not for reading: a writer may have queued meanwhile.
 */
#define kl_down_read(sem) __kl_rwsem(down_read, typeof(sem))(sem)

/**
 * kl_down_read_interruptible() - take a semaphore for reading unless a signal comes
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: As kl_down_read().
 * Return: 0, or -EINTR, with @sem not taken, when a signal came first.
 */
#define kl_down_read_interruptible(sem) __kl_rwsem(down_read_interruptible, typeof(sem))(sem)

/**
 * kl_down_read_killable() - take a semaphore for reading unless a fatal signal comes
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: As kl_down_read().
 * Return: 0, or -EINTR, with @sem not taken, when a fatal signal came first.
 */
#define kl_down_read_killable(sem) __kl_rwsem(down_read_killable, typeof(sem))(sem)

/**
 * kl_down_read_trylock() - take a semaphore for reading if that needs no wait
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Any but NMI.
 * Return: Whether @sem was taken.
 */
#define kl_down_read_trylock(sem) __kl_rwsem(down_read_trylock, typeof(sem))(sem)

/**
 * kl_down_read_nested() - take a semaphore for reading beside others of its class
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 * @subclass: its place in the order of these, 0 to 7, for lockdep
 *
 * Context: As kl_down_read().
 */
#define kl_down_read_nested(sem, subclass) \
	__kl_rwsem(down_read_nested, typeof(sem))(sem, subclass)

/**
 * kl_down_read_killable_nested() - kl_down_read_killable() beside others of the class
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 * @subclass: its place in the order of these, 0 to 7, for lockdep
 *
 * Context: As kl_down_read().
 * Return: 0, or -EINTR, with @sem not taken, when a fatal signal came first.
 */
#define kl_down_read_killable_nested(sem, subclass) \
	__kl_rwsem(down_read_killable_nested, typeof(sem))(sem, subclass)

/**
 * kl_down_read_non_owner() - take a semaphore for reading that another task will give up
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Lockdep does not see it. To be given up by kl_up_read_non_owner().
 *
 * Context: As kl_down_read().
 */
#define kl_down_read_non_owner(sem) __kl_rwsem(down_read_non_owner, typeof(sem))(sem)

/**
 * kl_up_read() - give up a semaphore held for reading
 * @sem: the struct kl_rwsem or kl_rwsem_xadd, which this task has taken
 *
 * Context: Any but NMI.
 */
#define kl_up_read(sem) __kl_rwsem(up_read, typeof(sem))(sem)

/**
 * kl_up_read_non_owner() - give up a semaphore taken by kl_down_read_non_owner()
 * @sem: the struct kl_rwsem or kl_rwsem_xadd, which any task has taken so
 *
 * Context: Any but NMI.
 */
#define kl_up_read_non_owner(sem) __kl_rwsem(up_read_non_owner, typeof(sem))(sem)

/**
 * kl_down_write() - take a semaphore for writing
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Process context. Sleeps; no signal ends that. The task must not
 * hold @sem already.
 */
#define kl_down_write(sem) __kl_rwsem(down_write, typeof(sem))(sem)

/**
 * kl_down_write_killable() - take a semaphore for writing unless a fatal signal comes
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: As kl_down_write().
 * Return: 0, or -EINTR, with @sem not taken, when a fatal signal came first.
 */
#define kl_down_write_killable(sem) __kl_rwsem(down_write_killable, typeof(sem))(sem)

/**
 * kl_down_write_trylock() - take a semaphore for writing if that needs no wait
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Any but NMI.
 * Return: Whether @sem was taken.
 */
#define kl_down_write_trylock(sem) __kl_rwsem(down_write_trylock, typeof(sem))(sem)

/**
 * kl_down_write_nested() - take a semaphore for writing beside others of its class
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 * @subclass: its place in the order of these, 0 to 7, for lockdep
 *
 * Context: As kl_down_write().
 */
#define kl_down_write_nested(sem, subclass) \
	__kl_rwsem(down_write_nested, typeof(sem))(sem, subclass)

/**
 * kl_down_write_killable_nested() - kl_down_write_killable() beside others of the class
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 * @subclass: its place in the order of these, 0 to 7, for lockdep
 *
 * Context: As kl_down_write().
 * Return: 0, or -EINTR, with @sem not taken, when a fatal signal came first.
 */
#define kl_down_write_killable_nested(sem, subclass) \
	__kl_rwsem(down_write_killable_nested, typeof(sem))(sem, subclass)

/**
 * kl_up_write() - give up a semaphore held for writing
 * @sem: the struct kl_rwsem or kl_rwsem_xadd, which this task has taken
 *
 * Context: Any but NMI.
 */
#define kl_up_write(sem) __kl_rwsem(up_write, typeof(sem))(sem)

/**
 * kl_downgrade_write() - go on as a reader, without letting a writer between
 * @sem: the struct kl_rwsem or kl_rwsem_xadd, which this task holds for writing
 *
 * Context: Any but NMI.
 */
#define kl_downgrade_write(sem) __kl_rwsem(downgrade_write, typeof(sem))(sem)

/**
 * kl_is_locked() - ask whether someone has a semaphore or tries to
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Any.
 * Return: The answer, out of date at once unless the caller holds @sem.
 */
#define kl_is_locked(sem) __kl_rwsem(is_locked, typeof(sem))(sem)

/**
 * kl_is_contended() - ask whether someone sleeps for a semaphore
 * @sem: the struct kl_rwsem or kl_rwsem_xadd
 *
 * Context: Any.
 * Return: The answer, out of date at once.
 */
#define kl_is_contended(sem) __kl_rwsem(is_contended, typeof(sem))(sem)

/* guard(kl_rwsem_read)(&sem) and so on, see linux/cleanup.h */
DEFINE_GUARD(kl_rwsem_read, struct kl_rwsem *, kl_down_read(_T), kl_up_read(_T))
DEFINE_GUARD_COND(kl_rwsem_read, _try, kl_down_read_trylock(_T))
DEFINE_GUARD_COND(kl_rwsem_read, _intr, kl_down_read_interruptible(_T), _RET == 0)
DEFINE_GUARD(kl_rwsem_write, struct kl_rwsem *, kl_down_write(_T), kl_up_write(_T))
DEFINE_GUARD_COND(kl_rwsem_write, _try, kl_down_write_trylock(_T))
DEFINE_GUARD_COND(kl_rwsem_write, _kill, kl_down_write_killable(_T), _RET == 0)
DEFINE_GUARD(kl_rwsem_xadd_read, struct kl_rwsem_xadd *, kl_down_read(_T), kl_up_read(_T))
DEFINE_GUARD_COND(kl_rwsem_xadd_read, _try, kl_down_read_trylock(_T))
DEFINE_GUARD_COND(kl_rwsem_xadd_read, _intr, kl_down_read_interruptible(_T), _RET == 0)
DEFINE_GUARD(kl_rwsem_xadd_write, struct kl_rwsem_xadd *, kl_down_write(_T), kl_up_write(_T))
DEFINE_GUARD_COND(kl_rwsem_xadd_write, _try, kl_down_write_trylock(_T))
DEFINE_GUARD_COND(kl_rwsem_xadd_write, _kill, kl_down_write_killable(_T), _RET == 0)

/**
 * struct kl_lockref - spinlock and reference count in one word
 * @dep_map: the lock as lockdep knows it; empty without lockdep
 *
 * As the kernel's struct lockref, but lockless in all kernels. A positive count
 * is that of references, 0 means none, a negative one a dead object. Made by
 * kl_lockref_init(). Nothing is to be freed.
 */
struct kl_lockref {
	/* private: */
	u64 word;
	/* public: */
	struct lockdep_map dep_map;
};

void __kl_lockref_init(struct kl_lockref *ref, const char *name, struct lock_class_key *key);

/**
 * kl_lockref_init() - make a free lock with one reference, the caller's
 * @ref: where; a struct kl_lockref that nobody uses
 *
 * All locks made at one place in the source are one class to lockdep.
 */
#define kl_lockref_init(ref)						\
do {									\
	static struct lock_class_key __key;				\
									\
	__kl_lockref_init((ref), #ref, &__key);				\
} while (0)

/**
 * kl_lockref_get() - get another reference
 * @ref: the lock, of which the caller has a reference
 *
 * Context: Any but NMI and, where the lock is taken with interrupts on, hard interrupts.
 */
void kl_lockref_get(struct kl_lockref *ref);

/**
 * kl_lockref_get_not_zero() - get a reference if there is one
 * @ref: the lock
 *
 * Context: As kl_lockref_get().
 * Return: Whether the caller got one; not if the count was 0 or negative.
 */
bool __must_check kl_lockref_get_not_zero(struct kl_lockref *ref);

/**
 * kl_lockref_get_not_dead() - get a reference unless the object is dead
 * @ref: the lock
 *
 * Context: As kl_lockref_get().
 * Return: Whether the caller got one; not if the count was negative.
 */
bool __must_check kl_lockref_get_not_dead(struct kl_lockref *ref);

/**
 * kl_lockref_put_return() - put a reference without ever taking the lock
 * @ref: the lock
 *
 * Context: Any.
 * Return: The new count; -1, with nothing done, when the count was not
 * positive or the lock was not free.
 */
int __must_check kl_lockref_put_return(struct kl_lockref *ref);

/**
 * kl_lockref_put_or_lock() - put a reference unless it is the last
 * @ref: the lock
 *
 * Context: As kl_lockref_get().
 * Return: true when it was put; false, with the lock held, when the count was 1
 * or less.
 */
bool __must_check kl_lockref_put_or_lock(struct kl_lockref *ref);

/**
 * kl_lockref_lock() - take the lock, after which the count stands still
 * @ref: the lock
 *
 * Context: Any but NMI; one that is taken in interrupts too needs them off.
 * Spins. Preemption is off until kl_lockref_unlock().
 */
void kl_lockref_lock(struct kl_lockref *ref);

/**
 * kl_lockref_trylock() - take the lock if it is free
 * @ref: the lock
 *
 * Context: As kl_lockref_lock(), without spinning.
 * Return: Whether it was taken.
 */
bool __must_check kl_lockref_trylock(struct kl_lockref *ref);

/**
 * kl_lockref_unlock() - give up the lock
 * @ref: the lock, which this task holds
 */
void kl_lockref_unlock(struct kl_lockref *ref);

/**
 * kl_lockref_mark_dead() - see to it that nobody gets a reference any more
 * @ref: the lock, which this task holds
 */
void kl_lockref_mark_dead(struct kl_lockref *ref);

/**
 * kl_lockref_count() - read the count
 * @ref: the lock
 *
 * Return: The count, out of date at once unless the caller holds the lock.
 */
int kl_lockref_count(struct kl_lockref *ref);

/**
 * kl_lockref_set_count() - change the count
 * @ref: the lock, which this task holds
 * @count: its new value
 */
void kl_lockref_set_count(struct kl_lockref *ref, int count);

/**
 * kl_lockref_is_dead() - ask whether the object is dead
 * @ref: the lock
 *
 * Return: The answer; of that without the lock, only "yes" stays true.
 */
bool kl_lockref_is_dead(struct kl_lockref *ref);

/**
 * kl_lockref_is_dead_or_zero() - ask whether the object is dead or without references
 * @ref: the lock
 *
 * Return: The answer, out of date at once unless the caller holds the lock.
 */
bool kl_lockref_is_dead_or_zero(struct kl_lockref *ref);

/**
 * struct kl_rcu_sync - what tells readers whether they may take a fast path
 *
 * As the kernel's struct rcu_sync, which it does not export. Made by
 * kl_rcu_sync_init(), to be given to kl_rcu_sync_dtor() before its memory goes.
 */
struct kl_rcu_sync {
	/* private: */
	u64 word;
	struct rcu_head head;
	wait_queue_head_t passed;
};

/**
 * kl_rcu_sync_init() - make a gate through which readers may go
 * @rss: where; a struct kl_rcu_sync that nobody uses
 */
void kl_rcu_sync_init(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_is_idle() - ask whether a reader may take its fast path
 * @rss: the gate
 *
 * What the reader does on it, up to the end of its read-side section, is over
 * before a kl_rcu_sync_enter() returns whose effect it has not seen.
 *
 * Context: A read-side section of RCU of any kind: rcu_read_lock(), preemption
 * or bottom halves off. Kernels with PROVE_RCU report others.
 * Return: Whether it may.
 */
bool __must_check kl_rcu_sync_is_idle(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_enter() - put all readers on the slow path
 * @rss: the gate
 *
 * They stay there until as many kl_rcu_sync_exit() have followed as there were
 * enters, and a grace period after the last.
 *
 * Context: Process context. Sleeps, for a grace period if readers were on the
 * fast path.
 */
void kl_rcu_sync_enter(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_enter_nowait() - begin kl_rcu_sync_enter()
 * @rss: the gate
 *
 * Counts as an enter. Only after kl_rcu_sync_wait() all readers are on the
 * slow path.
 *
 * Context: Process context. Does not sleep.
 */
void kl_rcu_sync_enter_nowait(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_wait() - end kl_rcu_sync_enter_nowait()
 * @rss: the gate
 *
 * Context: Process context. Sleeps.
 */
void kl_rcu_sync_wait(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_exit() - take back one kl_rcu_sync_enter()
 * @rss: the gate
 *
 * Context: Process context. Does not sleep.
 */
void kl_rcu_sync_exit(struct kl_rcu_sync *rss);

/**
 * kl_rcu_sync_dtor() - end the use of a gate
 * @rss: the gate, which everybody who has entered has left
 *
 * Context: Process context. Sleeps when a callback is pending.
 */
void kl_rcu_sync_dtor(struct kl_rcu_sync *rss);

/**
 * struct kl_percpu_rwsem - read-write semaphore whose readers share nothing
 * @dep_map: the lock as lockdep knows it; empty without lockdep
 *
 * As the kernel's struct percpu_rw_semaphore: a reader changes a counter of its
 * own CPU, a writer waits for a grace period of RCU. For locks that are hardly
 * ever written. Made by kl_percpu_init_rwsem(), to be given to
 * kl_percpu_free_rwsem() before its memory goes.
 */
struct kl_percpu_rwsem {
	/* private: */
	struct kl_rcu_sync gate;
	void *counts;
	u32 block;
	struct {
		raw_spinlock_t lock;
		void *first;
		void *last;
	} queue;
	u64 drain;
	/* public: */
	struct lockdep_map dep_map;
};

int __must_check __kl_percpu_init_rwsem(struct kl_percpu_rwsem *sem, const char *name,
					struct lock_class_key *key);

/**
 * kl_percpu_init_rwsem() - make a free semaphore
 * @sem: where; a struct kl_percpu_rwsem that nobody uses
 *
 * All locks made at one place in the source are one class to lockdep.
 *
 * Context: Process context. Allocates memory.
 * Return: 0, or -ENOMEM; kl_percpu_free_rwsem() is allowed then too.
 */
#define kl_percpu_init_rwsem(sem)					\
({									\
	static struct lock_class_key __key;				\
									\
	__kl_percpu_init_rwsem((sem), #sem, &__key);			\
})

/**
 * kl_percpu_free_rwsem() - free what a semaphore has
 * @sem: the semaphore, which nobody uses; zeroed memory will do, and a second time
 *
 * Context: Process context. Sleeps.
 */
void kl_percpu_free_rwsem(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_down_read() - take a semaphore for reading
 * @sem: the semaphore
 *
 * Context: Process context. Sleeps while a writer has the lock. The task must
 * not hold @sem already.
 */
void kl_percpu_down_read(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_down_read_freezable() - kl_percpu_down_read() by a task that may be frozen meanwhile
 * @sem: the semaphore
 *
 * Context: As kl_percpu_down_read().
 */
void kl_percpu_down_read_freezable(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_down_read_trylock() - take a semaphore for reading if that needs no wait
 * @sem: the semaphore
 *
 * Context: Any but NMI.
 * Return: Whether @sem was taken.
 */
bool __must_check kl_percpu_down_read_trylock(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_up_read() - give up a semaphore held for reading
 * @sem: the semaphore, which this task has taken
 *
 * Context: Any but NMI.
 */
void kl_percpu_up_read(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_down_write() - take a semaphore for writing
 * @sem: the semaphore
 *
 * Context: Process context. Sleeps, for a grace period if there was no writer
 * shortly before. The task must not hold @sem already.
 */
void kl_percpu_down_write(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_up_write() - give up a semaphore held for writing
 * @sem: the semaphore, which this task has taken
 *
 * Context: Process context. Does not sleep.
 */
void kl_percpu_up_write(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_is_read_locked() - ask whether readers have a semaphore
 * @sem: the semaphore
 *
 * Return: The answer, out of date at once. Reads a counter of each CPU.
 */
bool kl_percpu_is_read_locked(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_is_write_locked() - ask whether a writer has a semaphore or is about to
 * @sem: the semaphore
 *
 * Return: The answer, out of date at once unless the caller holds @sem.
 */
bool kl_percpu_is_write_locked(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_rwsem_release() - have lockdep forget that this task holds a semaphore
 * @sem: the semaphore, which this task has taken and another one will give up
 */
void kl_percpu_rwsem_release(struct kl_percpu_rwsem *sem);

/**
 * kl_percpu_rwsem_acquire() - have lockdep know that this task now holds a semaphore
 * @sem: the semaphore, given to kl_percpu_rwsem_release() by another task
 * @write: whether it is held for writing
 */
void kl_percpu_rwsem_acquire(struct kl_percpu_rwsem *sem, bool write);

DEFINE_GUARD(kl_percpu_read, struct kl_percpu_rwsem *, kl_percpu_down_read(_T),
	     kl_percpu_up_read(_T))
DEFINE_GUARD_COND(kl_percpu_read, _try, kl_percpu_down_read_trylock(_T))
DEFINE_GUARD(kl_percpu_write, struct kl_percpu_rwsem *, kl_percpu_down_write(_T),
	     kl_percpu_up_write(_T))

#endif /* KLOCKS_H */
