// SPDX-License-Identifier: GPL-2.0
/* As kl_locktorture.c, with the xadd rwsem as rwsem_lock. */
#define LOCKTORTURE_DEFINE_RWSEM DEFINE_KL_RWSEM_XADD
#include "kl_locktorture.c"
