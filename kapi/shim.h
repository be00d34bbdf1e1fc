/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel offers only as C inlines, macros or unexported functions.
 * kapi/ is the sole user; each function does what its name says in C.
 */
#ifndef KLOCKS_KAPI_SHIM_H
#define KLOCKS_KAPI_SHIM_H

#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/lockref.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <trace/events/lock.h>

static const unsigned int KAPI_LCB_F_READ = LCB_F_READ;
static const unsigned int KAPI_LCB_F_WRITE = LCB_F_WRITE;

/* preemption */
void kapi_preempt_disable(void);
void kapi_preempt_enable(void);
void kapi_preempt_enable_no_resched(void);
unsigned int kapi_smp_processor_id(void);

/* barriers */
void kapi_smp_mb__before_atomic(void);

/* tasks */
bool kapi_need_resched(void);
bool kapi_owner_on_cpu(struct task_struct *t);
bool kapi_vcpu_is_preempted(unsigned int cpu);
bool kapi_rt_or_dl_task(struct task_struct *t);
bool kapi_signal_pending_state(unsigned int state, struct task_struct *t);
void kapi_set_current_state(unsigned int state);
void kapi___set_current_state(unsigned int state);

/* per-CPU data */
void *kapi_per_cpu_ptr(void *p, unsigned int cpu);
void kapi_this_cpu_add_u64(u64 *p, u64 n);

/* raw spinlocks */
void kapi_raw_spin_lock_init(raw_spinlock_t *lock, const char *name,
			     struct lock_class_key *key);
bool kapi_raw_spin_is_locked(raw_spinlock_t *lock);
void kapi_raw_spin_lock_irq(raw_spinlock_t *lock);
void kapi_raw_spin_unlock_irq(raw_spinlock_t *lock);
unsigned long kapi_raw_spin_lock_irqsave(raw_spinlock_t *lock);
bool kapi_raw_spin_trylock_irqsave(raw_spinlock_t *lock, unsigned long *flags);
void kapi_raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags);

/* clocks */
u64 kapi_sched_clock(void);

/* lockdep and lock statistics */
void kapi_lockdep_init(struct lockdep_map *map, const char *name,
		       struct lock_class_key *key);
void kapi_lockdep_acquire(struct lockdep_map *map, unsigned int subclass, bool tries);
void kapi_lockdep_acquire_read(struct lockdep_map *map, unsigned int subclass,
			       bool tries);
void kapi_lockdep_release(struct lockdep_map *map);
void kapi_lockdep_downgrade(struct lockdep_map *map);
void kapi_lock_contended(struct lockdep_map *map);
void kapi_lock_acquired(struct lockdep_map *map);
void kapi_hung_task_set_blocker(void *lock, bool write);
void kapi_hung_task_clear_blocker(void);

/* tracepoints */
void kapi_trace_contention_begin(void *lock, unsigned int flags);
void kapi_trace_contention_end(void *lock, int ret);

/* harness */
static const unsigned long KAPI_HZ = HZ;
const char *kapi_kernel_release(void);
const char *kapi_rustc_version(void);
const char *kapi_preempt_model(void);

/* lockref */
void kapi_word_init_map(struct lockdep_map *map, const char *name,
			struct lock_class_key *key);
void kapi_word_lock(u64 *word, struct lockdep_map *map);
bool kapi_word_trylock(u64 *word, struct lockdep_map *map);
void kapi_word_unlock(u64 *word, struct lockdep_map *map);
void kapi_lockref_init(struct lockref *ref, const char *name,
		       struct lock_class_key *key);
void kapi_lockref_lock(struct lockref *ref);
bool kapi_lockref_trylock(struct lockref *ref);
void kapi_lockref_unlock(struct lockref *ref);
int kapi_lockref_count(struct lockref *ref);
void kapi_lockref_set_count(struct lockref *ref, int count);

/* rcu, percpu */
struct percpu_rw_semaphore;
static const unsigned int KAPI_LCB_F_PERCPU = LCB_F_PERCPU;
void kapi_call_rcu_hurry(struct rcu_head *head, rcu_callback_t func);
void kapi_rcu_assert_reader(void);
void kapi_rcu_assert_reader_sched(void);
void kapi_rcu_assert_reader_bh(void);
void kapi_rcu_assert_reader_any(void);
void kapi_this_cpu_inc_u32(u32 *p);
void kapi_this_cpu_dec_u32(u32 *p);
void kapi_trace_contended_release(void *lock);
void kapi_percpu_down_read(struct percpu_rw_semaphore *sem);
bool kapi_percpu_down_read_trylock(struct percpu_rw_semaphore *sem);
void kapi_percpu_up_read(struct percpu_rw_semaphore *sem);
u64 kapi_cpu_interrupts(unsigned int cpu);
unsigned long kapi_current_switches(void);

/* debug */
void kapi_kcsan_check(void *p, size_t size, bool write);

#endif /* KLOCKS_KAPI_SHIM_H */
