# SPDX-License-Identifier: GPL-2.0
#
# Builds klocks.ko against a built kernel tree; what is in the module is said in Kbuild.

KDIR ?= /lib/modules/$(shell uname -r)/build
# where objects and klocks.ko go, so that one source tree serves several kernels
MO ?= $(CURDIR)/out/build/$(notdir $(abspath $(KDIR)))$(if $(DEBUG),-debug)

RUSTFMT ?= $(firstword $(wildcard /usr/bin/rustfmt) rustfmt)
sources = find . \( -name out -o -name target -o -name .git \) -prune -o -name '*.rs' -print0

# kbuild DIR MO TARGET: runs the kernel's make for the modules in DIR with the tools that the kernel was built with
kbuild = args=$$(scripts/kdir '$(KDIR)') && \
	$(MAKE) --no-print-directory -C '$(KDIR)' $$args M='$(CURDIR)$(1)' MO='$(abspath $(2))' $(3)

# extra MO: what a module that uses the klocks.ko in MO is built with
extra = KBUILD_EXTRA_SYMBOLS='$(abspath $(1))/Module.symvers'
strict = CLIPPY=1 KRUSTFLAGS=-Dwarnings KCFLAGS=-Werror

all:
	@+$(call kbuild,,$(MO),modules)

# The modules that selftests/client.sh loads; they use klocks as any other module would.
clients: all
	@+$(call kbuild,/selftests/client,$(MO)/client,$(call extra,$(MO)) modules)
	@+$(call kbuild,/selftests/client_rs,$(MO)/client_rs,$(call extra,$(MO)) modules)

check:
	@scripts/kdir '$(KDIR)' >/dev/null
	@echo 'klocks can be built against $(KDIR)'

modules_install: all
	@+$(call kbuild,,$(MO),modules_install)

doc: all
	@scripts/doc '$(abspath $(MO))'

# Warnings of rustc, clippy and clang are failures. Objects of clippy's own leave those of the module alone.
clippy:
	@+$(call kbuild,,$(MO)-clippy,$(strict) modules)
	@+$(call kbuild,/selftests/client_rs,$(MO)-clippy/client_rs,$(strict) $(call extra,$(MO)-clippy) modules)

fmt:
	@$(sources) | xargs -0 $(RUSTFMT) --edition 2021

fmt-check:
	@$(sources) | xargs -0 $(RUSTFMT) --edition 2021 --check

# TAG as a source tarball: the same bytes from the same tag
dist:
	@test -n '$(TAG)' || { echo 'which release? make dist TAG=v0.1.0' >&2; exit 2; }
	@git rev-parse -q --verify 'refs/tags/$(TAG)' >/dev/null || { echo 'there is no tag $(TAG): git tag lists them' >&2; exit 2; }
	@mkdir -p out
	@git archive --prefix='klocks-$(TAG:v%=%)/' '$(TAG)' | gzip -n >'out/klocks-$(TAG:v%=%).tar.gz'
	@echo 'out/klocks-$(TAG:v%=%).tar.gz'

clean:
	rm -rf out/build

help:
	@echo 'make [KDIR=DIR]   build klocks.ko against the built kernel tree DIR (default: the running kernel'"'"'s)'
	@echo '  DEBUG=1         with stall points, and the C shim as ordinary calls'
	@echo '  MO=DIR          put the objects and klocks.ko there (default: out/build/<name of KDIR>)'
	@echo '  FORCE=1         go on with a kernel that is not supported'
	@echo '  RUSTC= CC= BINDGEN=  tools, when those that the kernel was built with are not found'
	@echo 'make clients      build the modules of selftests/client too, under MO'
	@echo 'make check        say what KDIR lacks'
	@echo 'make modules_install [INSTALL_MOD_PATH=DIR]'
	@echo 'make doc          write the documentation of the crate under MO'
	@echo 'make clippy       build with clippy; every warning is a failure'
	@echo 'make fmt          format the Rust sources'
	@echo 'make fmt-check    say which are not formatted'
	@echo 'make dist TAG=v0.1.0  make a source tarball of a release in out/'
	@echo 'make clean        remove out/build'

.PHONY: all clients doc check modules_install clippy fmt fmt-check dist clean help
