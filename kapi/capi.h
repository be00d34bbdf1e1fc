/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What capi.rs is compared with: the functions of include/klocks.h, and here
 * size, alignment and layout of its structures.
 */
#ifndef KLOCKS_KAPI_CAPI_H
#define KLOCKS_KAPI_CAPI_H

#include <linux/stddef.h>

#include "../include/klocks.h"

#define KL_LAYOUT(type)									\
	static const unsigned long type##_SIZE = sizeof(struct type);			\
	static const unsigned long type##_ALIGN = __alignof__(struct type)
#define KL_DEP_MAP(type)								\
	static const unsigned long type##_DEP_MAP = offsetof(struct type, dep_map)

KL_LAYOUT(kl_rwsem);
KL_LAYOUT(kl_rwsem_xadd);
KL_LAYOUT(kl_lockref);
KL_LAYOUT(kl_rcu_sync);
KL_LAYOUT(kl_percpu_rwsem);

KL_DEP_MAP(kl_rwsem);
KL_DEP_MAP(kl_rwsem_xadd);
KL_DEP_MAP(kl_percpu_rwsem);

#endif /* KLOCKS_KAPI_CAPI_H */
