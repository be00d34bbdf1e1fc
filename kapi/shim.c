// SPDX-License-Identifier: GPL-2.0
/*
 * Bodies of kapi/shim.h. Where the kernel's configuration allows it they are
 * linked into the crate's bitcode and inlined there (see Kbuild); elsewhere
 * this is an ordinary object and each is a call.
 */
#include <linux/hung_task.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/deadline.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <trace/events/lock.h>

#include "shim.h"

#ifdef KAPI_SHIM_INLINE
#define SHIM __always_inline
#else
#define SHIM
#endif

/* preemption */

SHIM void kapi_preempt_disable(void)
{
	preempt_disable();
}

SHIM void kapi_preempt_enable(void)
{
	preempt_enable();
}

/* The kernel hides preempt_enable_no_resched() from modules. */
SHIM void kapi_preempt_enable_no_resched(void)
{
	barrier();
	preempt_count_dec();
}

SHIM unsigned int kapi_smp_processor_id(void)
{
	return smp_processor_id();
}

/* barriers */

SHIM void kapi_smp_mb__before_atomic(void)
{
	/* Pairs with what the caller says. */
	smp_mb__before_atomic();
}

/* tasks */

SHIM bool kapi_need_resched(void)
{
	return need_resched();
}

SHIM bool kapi_owner_on_cpu(struct task_struct *t)
{
	return owner_on_cpu(t);
}

SHIM bool kapi_vcpu_is_preempted(unsigned int cpu)
{
	return vcpu_is_preempted(cpu);
}

SHIM bool kapi_rt_or_dl_task(struct task_struct *t)
{
	return rt_or_dl_task(t);
}

SHIM bool kapi_signal_pending_state(unsigned int state, struct task_struct *t)
{
	return signal_pending_state(state, t);
}

SHIM void kapi_set_current_state(unsigned int state)
{
	set_current_state(state);
}

SHIM void kapi___set_current_state(unsigned int state)
{
	__set_current_state(state);
}

/* per-CPU data */

SHIM void *kapi_per_cpu_ptr(void *p, unsigned int cpu)
{
	return per_cpu_ptr((void __percpu __force *)p, cpu);
}

SHIM void kapi_this_cpu_add_u64(u64 *p, u64 n)
{
	this_cpu_add(*(u64 __percpu __force *)p, n);
}

/* raw spinlocks */

SHIM void kapi_raw_spin_lock_init(raw_spinlock_t *lock, const char *name,
				  struct lock_class_key *key)
{
#ifdef CONFIG_DEBUG_SPINLOCK
	__raw_spin_lock_init(lock, name, key, LD_WAIT_SPIN);
#else
	raw_spin_lock_init(lock);
#endif
}

SHIM bool kapi_raw_spin_is_locked(raw_spinlock_t *lock)
{
	return raw_spin_is_locked(lock);
}

SHIM void kapi_raw_spin_lock_irq(raw_spinlock_t *lock)
{
	raw_spin_lock_irq(lock);
}

SHIM void kapi_raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	raw_spin_unlock_irq(lock);
}

SHIM unsigned long kapi_raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(lock, flags);
	return flags;
}

SHIM bool kapi_raw_spin_trylock_irqsave(raw_spinlock_t *lock, unsigned long *flags)
{
	return raw_spin_trylock_irqsave(lock, *flags);
}

SHIM void kapi_raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	raw_spin_unlock_irqrestore(lock, flags);
}

/* clocks */

SHIM u64 kapi_sched_clock(void)
{
	return sched_clock();
}

/* lockdep and lock statistics */

SHIM void kapi_lockdep_init(struct lockdep_map *map, const char *name,
			    struct lock_class_key *key)
{
	lockdep_init_map_wait(map, name, key, 0, LD_WAIT_SLEEP);
}

SHIM void kapi_lockdep_acquire(struct lockdep_map *map, unsigned int subclass, bool tries)
{
	rwsem_acquire(map, subclass, tries, _RET_IP_);
}

SHIM void kapi_lockdep_acquire_read(struct lockdep_map *map, unsigned int subclass,
				    bool tries)
{
	rwsem_acquire_read(map, subclass, tries, _RET_IP_);
}

SHIM void kapi_lockdep_release(struct lockdep_map *map)
{
	rwsem_release(map, _RET_IP_);
}

SHIM void kapi_lockdep_downgrade(struct lockdep_map *map)
{
	lock_downgrade(map, _RET_IP_);
}

SHIM void kapi_lock_contended(struct lockdep_map *map)
{
#ifdef CONFIG_LOCK_STAT
	lock_contended(map, _RET_IP_);
#endif
}

SHIM void kapi_lock_acquired(struct lockdep_map *map)
{
#ifdef CONFIG_LOCK_STAT
	lock_acquired(map, _RET_IP_);
#endif
}

SHIM void kapi_hung_task_set_blocker(void *lock, bool write)
{
	hung_task_set_blocker(lock, write ? BLOCKER_TYPE_RWSEM_WRITER :
					    BLOCKER_TYPE_RWSEM_READER);
}

SHIM void kapi_hung_task_clear_blocker(void)
{
	hung_task_clear_blocker();
}

/* tracepoints */

SHIM void kapi_trace_contention_begin(void *lock, unsigned int flags)
{
	trace_contention_begin(lock, flags);
}

SHIM void kapi_trace_contention_end(void *lock, int ret)
{
	trace_contention_end(lock, ret);
}

/* harness */

#include <linux/utsname.h>

SHIM const char *kapi_kernel_release(void)
{
	return init_utsname()->release;
}

SHIM const char *kapi_rustc_version(void)
{
	return CONFIG_RUSTC_VERSION_TEXT;
}

SHIM const char *kapi_preempt_model(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return "rt";
	if (preempt_model_full())
		return "full";
	if (preempt_model_lazy())
		return "lazy";
	if (preempt_model_voluntary())
		return "voluntary";
	return "none";
}

/* lockref */

#include <linux/lockdep.h>
#include <linux/lockref.h>

#ifndef CONFIG_QUEUED_SPINLOCKS
#error "klocks needs a kernel with queued spinlocks (CONFIG_QUEUED_SPINLOCKS)"
#endif

static_assert(sizeof(arch_spinlock_t) == sizeof(u32));

SHIM void kapi_word_init_map(struct lockdep_map *map, const char *name,
			     struct lock_class_key *key)
{
	lockdep_init_map_wait(map, name, key, 0, LD_WAIT_CONFIG);
}

/* __raw_spin_lock() without the debug state around the lock. */
SHIM void kapi_word_lock(u64 *word, struct lockdep_map *map)
{
	preempt_disable();
	spin_acquire(map, 0, 0, _RET_IP_);
	arch_spin_lock((arch_spinlock_t *)word);
}

SHIM bool kapi_word_trylock(u64 *word, struct lockdep_map *map)
{
	preempt_disable();
	if (!arch_spin_trylock((arch_spinlock_t *)word)) {
		preempt_enable();
		return false;
	}
	spin_acquire(map, 0, 1, _RET_IP_);
	return true;
}

SHIM void kapi_word_unlock(u64 *word, struct lockdep_map *map)
{
	spin_release(map, _RET_IP_);
	arch_spin_unlock((arch_spinlock_t *)word);
	preempt_enable();
}

SHIM void kapi_lockref_init(struct lockref *ref, const char *name,
			    struct lock_class_key *key)
{
#ifdef CONFIG_DEBUG_SPINLOCK
	__raw_spin_lock_init(spinlock_check(&ref->lock), name, key, LD_WAIT_CONFIG);
#else
	spin_lock_init(&ref->lock);
#endif
	ref->count = 1;
}

SHIM void kapi_lockref_lock(struct lockref *ref)
{
	spin_lock(&ref->lock);
}

SHIM bool kapi_lockref_trylock(struct lockref *ref)
{
	return spin_trylock(&ref->lock);
}

SHIM void kapi_lockref_unlock(struct lockref *ref)
{
	spin_unlock(&ref->lock);
}

SHIM int kapi_lockref_count(struct lockref *ref)
{
	return READ_ONCE(ref->count);
}

SHIM void kapi_lockref_set_count(struct lockref *ref, int count)
{
	WRITE_ONCE(ref->count, count);
}

/* rcu, percpu */

#include <linux/hardirq.h>
#include <linux/percpu-rwsem.h>
#include <linux/rcupdate.h>

SHIM void kapi_call_rcu_hurry(struct rcu_head *head, rcu_callback_t func)
{
	call_rcu_hurry(head, func);
}

SHIM void kapi_rcu_assert_reader(void)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "suspicious is_idle() usage");
}

SHIM void kapi_rcu_assert_reader_sched(void)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_sched_held(), "suspicious is_idle() usage");
}

SHIM void kapi_rcu_assert_reader_bh(void)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_bh_held(), "suspicious is_idle() usage");
}

SHIM void kapi_rcu_assert_reader_any(void)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_any_held(), "suspicious is_idle() usage");
}

SHIM void kapi_this_cpu_inc_u32(u32 *p)
{
	this_cpu_inc(*(u32 __percpu __force *)p);
}

SHIM void kapi_this_cpu_dec_u32(u32 *p)
{
	this_cpu_dec(*(u32 __percpu __force *)p);
}

SHIM void kapi_trace_contended_release(void *lock)
{
	if (trace_contended_release_enabled())
		trace_call__contended_release(lock);
}

SHIM void kapi_percpu_down_read(struct percpu_rw_semaphore *sem)
{
	percpu_down_read(sem);
}

SHIM bool kapi_percpu_down_read_trylock(struct percpu_rw_semaphore *sem)
{
	return percpu_down_read_trylock(sem);
}

SHIM void kapi_percpu_up_read(struct percpu_rw_semaphore *sem)
{
	percpu_up_read(sem);
}

/* Timer ticks and interrupts between CPUs. Devices are not counted, nor is anything on UML. */
SHIM u64 kapi_cpu_interrupts(unsigned int cpu)
{
	u64 sum = 0;
#ifndef CONFIG_UML
	const irq_cpustat_t *stat = &per_cpu(irq_stat, cpu);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stat->counts); i++)
		sum += READ_ONCE(stat->counts[i]);
#endif
	return sum;
}

SHIM unsigned long kapi_current_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

/* debug */

#include <linux/kcsan-checks.h>

SHIM void kapi_kcsan_check(void *p, size_t size, bool write)
{
	__kcsan_check_access(p, size, write ? KCSAN_ACCESS_WRITE : 0);
}
