/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A guest program of known counts, to test the plugin with: three blocks of
 * one thread and 200000 locked additions, then three of two threads that hand
 * a word to and fro, 1000 times each.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define MARK(code) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long %c0" \
			 : : "i"(0x4b4c0000 | (code) << 8) : "memory")
#define RUN_OPEN() MARK(1)
#define RUN_CLOSE() MARK(2)
#define WORK_BEGIN() MARK(3)
#define WORK_END() MARK(4)

static unsigned long sum __attribute__((aligned(64)));
static unsigned long turn __attribute__((aligned(64)));
static int ready __attribute__((aligned(64)));
static int go __attribute__((aligned(64)));

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static void additions(void)
{
	RUN_OPEN();
	WORK_BEGIN();
	__asm__ volatile("	mov $200000, %%ecx\n"
			 "1:	lock incq %0\n"
			 "	dec %%ecx\n"
			 "	jnz 1b"
			 : "+m"(sum) : : "ecx", "cc");
	WORK_END();
	RUN_CLOSE();
}

static void *hand_over(void *arg)
{
	unsigned long me = (unsigned long)arg;

	pin(me);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	WORK_BEGIN();
	__asm__ volatile("	mov $1000, %%ecx\n"
			 "1:	cmpq %1, %0\n"
			 "	je 2f\n"
			 "	pause\n"
			 "	jmp 1b\n"
			 "2:	movq %2, %0\n"
			 "	dec %%ecx\n"
			 "	jnz 1b"
			 : "+m"(turn) : "r"(me), "r"(!me + 0UL) : "ecx", "cc");
	WORK_END();
	return NULL;
}

static int hand_overs(void)
{
	pthread_t threads[2];
	unsigned long i;

	turn = ready = go = 0;
	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, hand_over, (void *)i))
			return 1;
	while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
	RUN_OPEN();
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	RUN_CLOSE();
	return 0;
}

int main(void)
{
	int i;

	pin(2);
	for (i = 0; i < 3; i++)
		additions();
	for (i = 0; i < 3; i++)
		if (hand_overs())
			return 1;
	return sum != 600000;
}
