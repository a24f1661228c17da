# SPDX-License-Identifier: BSD-2-Clause
#
# `make help` lists the targets. Variables: BUILD (folder, default build),
# V=1 (show commands), SANITIZE=1 (ASan and UBSan; take a BUILD of its own),
# CC, CLANG, BPFTOOL, CFLAGS, LDFLAGS, PREFIX, DESTDIR.

# The version where git has no tag; `make VERSION=...` sets it as it stands (scripts/version.sh).
VERSION := 0.1.0

# As many jobs as there are CPUs, unless -j is given. A make started by another shares that one's jobs: before
# GNU make 4.4 its MAKEFLAGS do not show them here, and a -j of its own would replace them.
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

# Paths are relative to this folder, even if make is started elsewhere (make -f).
TOP := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(TOP),$(CURDIR))
MAKEFLAGS += --no-print-directory
.PHONY: all test demo bench hazards soak asan lint fuzz kernels html-assets install uninstall dist deb deb-check clean help
all test demo bench hazards soak asan lint fuzz kernels html-assets install uninstall dist deb deb-check clean help:
	@$(MAKE) -C $(TOP) $@
build/%:
	@$(MAKE) -C $(TOP) $@
else

BUILD ?= build
# One spelling, because $(BUILD)/flags contains it: another one would build everything again.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
DATADIR ?= $(PREFIX)/share/kxray
# commands that units and options start, not people
LIBEXECDIR ?= $(PREFIX)/lib/kxray
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CLANG ?= clang
# Debian's bpftool is in /usr/sbin, which an ordinary user's PATH does not contain.
BPFTOOL ?= $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)
PKG_CONFIG ?= pkg-config

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)'
endif

CFLAGS ?= $(if $(filter 1,$(SANITIZE)),-O1 -g1 -Wno-unknown-warning-option -Wno-format-truncation,-O2 -g)
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	    -Wwrite-strings
ifeq ($(SANITIZE),1)
SANITIZER := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	     -fno-omit-frame-pointer
ifeq ($(FUZZER),1)
# libelf returns pointers into the mapped file; where that is damaged, they are aligned to nothing.
SANITIZER += -fsanitize=fuzzer-no-link -fno-sanitize=alignment
$(BUILD)/tests/fuzz_%: SANITIZER += -fsanitize=fuzzer
endif
endif

# libiberty (demangler) and Zydis (decoder) come without a .pc file on Debian 12.
PACKAGES := libbpf libelf libdw jansson liblzma libseccomp libzstd zlib ncursesw
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
LIBS := $(or $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null),\
	     -lbpf -lelf -ldw -ljansson -llzma -lseccomp -lzstd -lz -lncursesw -ltinfo) -lZydis -liberty -lm -ldl

KX_CFLAGS = -std=gnu11 $(WARNINGS) -D_GNU_SOURCE -I. -Iuser -I$(BUILD) \
	    $(PKG_CFLAGS) $(CFLAGS) $(SANITIZER) -pthread
KX_LDFLAGS = $(LDFLAGS) $(SANITIZER) -pthread
DEPFLAGS = -MMD -MP

# -O2 and -g are required: the verifier rejects unoptimized code, and CO-RE needs BTF.
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -D__TARGET_ARCH_x86 -Ibpf -Ivmlinux \
	      -idirafter /usr/include/$(MULTIARCH)

SRCS := $(sort $(wildcard user/*.c user/*/*.c exporters/*.c exporters/*/*.c))
OBJS := $(SRCS:%.c=$(BUILD)/%.o)
LIB_OBJS := $(filter-out $(BUILD)/user/main.o,$(OBJS))
READING_OBJS := $(foreach room,base trace binary plan calls report,$(filter $(BUILD)/user/$(room)/%,$(OBJS)))
BPF_SRCS := $(sort $(wildcard bpf/*.bpf.c))
SKELETONS := $(BPF_SRCS:bpf/%.bpf.c=$(BUILD)/%.skel.h)

MANUAL := $(patsubst user/man/%.in,$(BUILD)/man/%,$(sort $(wildcard user/man/*.in)))
COMPLETION := $(addprefix $(BUILD)/completion/kxray.,bash zsh fish)
UNIT := $(BUILD)/fleet/kxray-flight@.service

UNIT_SRCS := $(sort $(wildcard tests/unit/test_*.c))
UNIT_TESTS := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/%)
-include tests/live/targets/targets.mk
-include tests/hazards/targets/hazards.mk

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all demo test check tests bench hazards soak asan lint kernels install uninstall dist deb deb-check clean help FORCE

all: $(BUILD)/kxray $(MANUAL) $(COMPLETION) $(UNIT) ## build the program: $(BUILD)/kxray (default), its manual pages and completion

$(BUILD)/kxray: $(OBJS)
	$(call say,LINK)
	$(Q)$(CC) $(KX_LDFLAGS) -o $@ $^ $(LIBS)

# Lists of options, examples and pages come from the program's tables.
$(MANUAL): $(BUILD)/man/%: user/man/%.in scripts/manual.awk $(BUILD)/kxray
	$(call say,MAN)
	$(Q)mkdir -p $(@D)
	$(Q)awk -v kxray=$(BUILD)/kxray -v pages='$(notdir $(MANUAL))' -f scripts/manual.awk $< > $@

$(COMPLETION): $(BUILD)/completion/kxray.%: $(BUILD)/kxray
	$(call say,SHELL)
	$(Q)mkdir -p $(@D)
	$(Q)$(BUILD)/kxray help --completion $* > $@

# The path of ExecStart depends on PREFIX.
$(UNIT): exporters/fleet/kxray-flight@.service.in FORCE
	@mkdir -p $(@D)
	@sed 's,@LIBEXECDIR@,$(LIBEXECDIR),' '$<' > '$@.new'
	@if cmp -s '$@.new' '$@'; then rm '$@.new'; else mv '$@.new' '$@'; fi

$(BUILD)/libkxray.a: $(LIB_OBJS)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

# No other room includes the BPF objects.
$(filter $(BUILD)/user/tracer/%,$(OBJS)): | $(SKELETONS)

$(OBJS): $(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/tools
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(KX_CFLAGS) $(DEPFLAGS) -c -o $@ $<

# Copied into other processes: general registers only, no calls, no data, whatever CFLAGS are.
$(BUILD)/user/attach/recorder_code.o: private SANITIZER :=
$(BUILD)/user/attach/recorder_code.o: private KX_CFLAGS += -O2 -mgeneral-regs-only -fcf-protection=none -fno-stack-protector \
	-fno-sanitize=all -fno-lto -fno-asynchronous-unwind-tables -fno-jump-tables -fno-strict-aliasing -fomit-frame-pointer

# The page of export -f html is part of this object (.incbin).
$(BUILD)/exporters/html/page.o: exporters/html/page.html

# Only this object has the version, which each commit changes; private, so that $(BUILD)/flags does not.
$(BUILD)/user/main.o: $(BUILD)/version
$(BUILD)/user/main.o: private KX_CFLAGS += -DKX_VERSION='"$(shell cat $(BUILD)/version)"'

# The object is passed through bpftool's linker to drop its DWARF; BTF stays.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(BUILD)/flags | $(BUILD)/tools
	$(call say,BPF)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) $(DEPFLAGS) -MF $(@:.o=.d) -MT $@ -c -o $(@:.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.o=.tmp.o)

$(BUILD)/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@

# Everything depends on the first of these files; each is rewritten only if its content changes.
COMPILERS = $(CC) $(KX_CFLAGS) $(UNIT_CFLAGS) $(KX_LDFLAGS) $(CLANG) $(BPF_CFLAGS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(COMPILERS))' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@$(if $(filter command,$(origin VERSION)),echo '$(VERSION)',scripts/version.sh $(VERSION)) > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# The page and its licences are committed: only who changes their sources needs node and npm. NPM_FOLDER keeps what npm
# installs; PAGE and LICENSES may be other files, to compare.
HTML := exporters/html
NPM_FOLDER ?= $(BUILD)/html-assets
PAGE ?= $(HTML)/page.html
PAGE_LICENSES ?= $(HTML)/LICENSES

.PHONY: html-assets
html-assets: ## make the page of export -f html from exporters/html/page (needs node and npm)
	$(Q)mkdir -p $(NPM_FOLDER)
	$(Q)cp $(HTML)/page/package.json $(HTML)/page/package-lock.json $(NPM_FOLDER)
	$(Q)cd $(NPM_FOLDER) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(Q)node $(HTML)/page/build.mjs $(NPM_FOLDER) $(PAGE) $(PAGE_LICENSES)

# One clear sentence on a machine without the tools, instead of a page of errors.
$(BUILD)/tools: scripts/setup.sh
	@mkdir -p $(@D)
	@CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' scripts/setup.sh --check
	@touch $@

# Tests

# The tests' own code, not what they test: compiling it takes longer than running it.
UNIT_CFLAGS := -O0 -g1 -U_FORTIFY_SOURCE
UNIT_LIBS := $(or $(shell $(PKG_CONFIG) --libs cmocka 2>/dev/null),-lcmocka)

$(UNIT_TESTS:=.o): $(BUILD)/tests/%.o: tests/unit/%.c $(BUILD)/flags | $(BUILD)/tools
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(KX_CFLAGS) $(UNIT_CFLAGS) -Itests/unit $(DEPFLAGS) -c -o $@ $<

$(UNIT_TESTS): %: %.o $(BUILD)/libkxray.a
	$(call say,TEST)
	$(Q)$(CC) $(KX_LDFLAGS) -o $@ $< $(BUILD)/libkxray.a $(UNIT_LIBS) $(LIBS)

# Fuzz targets: `make test` replays the corpus; `make fuzz` runs libFuzzer.
# They are linked with the reading rooms and the parsers only, which a build with sanitizers compiles
# in a fraction of the time.
FUZZ_KINDS := fdr map elf plan spec types usdt condition windows
SPEC_OBJS := $(addprefix $(BUILD)/user/select/,condition.o condition_table.o value_spec.o resolved_values.o)
FUZZ_SECONDS ?= 60

$(BUILD)/tests/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c tests/fuzz/fuzz.h tests/fuzz/fuzz_binary.h \
		$(READING_OBJS) $(SPEC_OBJS) $(BUILD)/flags
	$(call say,FUZZ)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(KX_CFLAGS) -Itests/fuzz $(KX_LDFLAGS) -o $@ $< \
		$(if $(findstring fuzzer,$(SANITIZER)),,tests/fuzz/replay.c) $(READING_OBJS) $(SPEC_OBJS) $(LIBS)

.PHONY: fuzz fuzz-replay fuzz-run
fuzz-replay: $(FUZZ_KINDS:%=$(BUILD)/tests/fuzz_%)

fuzz: ## look for crashes with libFuzzer, FUZZ_SECONDS (60) for each target
	@NOSETUP=$(NOSETUP) scripts/setup.sh build test
	@$(MAKE) --no-print-directory CC=$(CLANG) BUILD=build-fuzz SANITIZE=1 FUZZER=1 fuzz-run

fuzz-run: fuzz-replay
	@for kind in $(FUZZ_KINDS); do \
		mkdir -p $(BUILD)/corpus/$$kind && \
		$(BUILD)/tests/fuzz_$$kind -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=$(BUILD)/crash-$$kind- $(BUILD)/corpus/$$kind \
			tests/fuzz/corpus/$$kind || exit 1; \
	done

# Programs of scripts/bench*.sh and of tests: make_trace writes traces of known calls, placement prints where probes go, windows where jumps
# can, collect_rate measures what a record costs the collector, in_process_verdict prints whether jumps are harmless in a process, in_process
# measures them, empty and hitpath have other programs at probes.
BENCHES := $(addprefix $(BUILD)/tests/,make_trace placement windows collect_rate in_process_verdict in_process empty hitpath)
$(BENCHES): $(BUILD)/tests/%: tests/bench/%.c $(BUILD)/libkxray.a $(BUILD)/flags
	$(call say,TEST)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(KX_CFLAGS) -fcf-protection=none -I$(BUILD)/tests $(DEPFLAGS) $(KX_LDFLAGS) -o $@ $< $(BUILD)/libkxray.a $(LIBS)

$(BUILD)/tests/hitpath: $(BUILD)/tests/hitpath.skel.h
$(BUILD)/tests/hitpath.bpf.o: tests/bench/hitpath.bpf.c $(wildcard bpf/*.h) $(BUILD)/flags
	$(call say,BPF)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(BUILD)/tests/hitpath.skel.h: $(BUILD)/tests/hitpath.bpf.o
	$(call say,SKEL)
	$(Q)$(BPFTOOL) gen skeleton $< name hitpath_bpf > $@

# What --in-process does to a target, step by step, for tests/live.
$(BUILD)/tests/patcher: tests/live/patcher.c tests/live/patcher_threads.c tests/live/patcher.h $(BUILD)/libkxray.a $(BUILD)/flags
	$(call say,TEST)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(KX_CFLAGS) $(KX_LDFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libkxray.a $(LIBS)

tests: all $(UNIT_TESTS) $(TARGETS) $(HAZARDS) $(BENCHES) $(BUILD)/tests/patcher ## build the program and all tests

# Packages are installed before a second make starts: that make runs pkg-config when it reads this file.
test: ## install what is missing, build, run every test (TESTS=fast: a minute, without root)
	@NOSETUP=$(NOSETUP) scripts/setup.sh build \
		$(if $(filter-out fast unit files fuzz,$(or $(TESTS),all)),test,fast)
	@$(MAKE) --no-print-directory check

check: tests ## the same without installing anything (TESTS='NAME...' for some: tests/README.md)
	@BUILD='$(BUILD)' tests/run.sh $(TESTS)

asan: ## the unit tests under AddressSanitizer and UBSan, in build-asan
	@$(MAKE) --no-print-directory SANITIZE=1 BUILD=build-asan TESTS=unit check

lint: $(SKELETONS) ## clang-tidy over the program's sources (.clang-tidy: the checks, and why some are left out)
	@printf '%s\n' $(SRCS) | xargs -P$$(nproc) -n8 sh -c 'clang-tidy --quiet "$$@" -- $(KX_CFLAGS)' sh

demo: ## install what is missing, build, trace a live program (KEEP=1: which keeps running)
	@NOSETUP=$(NOSETUP) scripts/setup.sh build
	@$(MAKE) --no-print-directory $(BUILD)/kxray $(BUILD)/tests/targets/demo
	@BUILD='$(BUILD)' KEEP='$(KEEP)' scripts/demo.sh

bench: ## install what is missing, measure against perf and bpftrace
	@NOSETUP=$(NOSETUP) scripts/setup.sh build test bench
	@$(MAKE) --no-print-directory tests
	@BUILD='$(BUILD)' scripts/bench.sh

RUNS ?= 100
HAZARD_OPTIONS ?= --jobs $(shell nproc) --compare
hazards: ## run each dangerous target RUNS (100) times in every way to trace it, print the table (hours)
	@NOSETUP=$(NOSETUP) scripts/setup.sh build test hazards
	@$(MAKE) --no-print-directory tests
	@BUILD='$(BUILD)' tests/hazards/run.py --runs $(RUNS) $(HAZARD_OPTIONS)

SECONDS ?= 3600
soak: ## install what is missing, record with --rotate for an hour (SECONDS=N), check that nothing grows
	@NOSETUP=$(NOSETUP) scripts/setup.sh build test
	@$(MAKE) --no-print-directory tests
	@BUILD='$(BUILD)' scripts/soak-rotate.sh $(SECONDS)

kernels: ## test every feature on each kernel, and write the README's table
	@NOSETUP=$(NOSETUP) scripts/setup.sh build test
	@$(MAKE) --no-print-directory tests
	@BUILD='$(BUILD)' KX_VM_SERIES='6.1 6.12' tests/run.sh vm
	@BUILD='$(BUILD)' tests/vm/matrix.sh --write

# Each file and its place, without DESTDIR. The last part of a page's name is its section: kxray-json.7 is in man7.
INSTALLED = $(BUILD)/kxray:$(BINDIR)/kxray \
	    $(foreach page,$(MANUAL),$(page):$(MANDIR)/man$(lastword $(subst ., ,$(page)))/$(notdir $(page))) \
	    $(BUILD)/completion/kxray.bash:$(BASHDIR)/kxray $(BUILD)/completion/kxray.zsh:$(ZSHDIR)/_kxray \
	    $(BUILD)/completion/kxray.fish:$(FISHDIR)/kxray.fish \
	    $(foreach file,schema.sql distributed.sql questions.sql load.sh,exporters/clickhouse/$(file):$(DATADIR)/clickhouse/$(file)) \
	    exporters/fleet/flight:$(LIBEXECDIR)/flight exporters/fleet/push:$(LIBEXECDIR)/push $(UNIT):$(SYSTEMDDIR)/$(notdir $(UNIT))

install: all ## install below $(DESTDIR)$(PREFIX)
	@set -e; for file in $(INSTALLED); do \
		to="$(DESTDIR)$${file#*:}" mode=644; [ ! -x "$${file%%:*}" ] || mode=755; \
		echo "  INSTALL  $$to"; install -D -m $$mode "$${file%%:*}" "$$to"; done

uninstall: ## remove what install put there
	@set -e; for file in $(INSTALLED); do echo "  REMOVE   $(DESTDIR)$${file#*:}"; rm -f "$(DESTDIR)$${file#*:}"; done

dist: ## write the last commit's files to $(BUILD)/kxray-VERSION.tar.gz, always the same bytes
	@scripts/dist.sh $(VERSION) $(BUILD)

deb: ## build a Debian package of the last commit in $(BUILD)/deb, and check it with lintian
	@scripts/deb.sh $(VERSION) $(BUILD)/deb

deb-check: ## build that package in a bare Debian root, install and use it in another (minutes, root, network)
	@scripts/deb-check.sh $(VERSION) $(BUILD)/deb-check

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## this list
	@echo 'make TARGET [BUILD=folder] [V=1] [SANITIZE=1] [PREFIX=/usr/local] [DESTDIR=]'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' Makefile | \
		sed 's,$$(BUILD),$(BUILD),; s,$$(DESTDIR)$$(PREFIX),DESTDIR and PREFIX,' | \
		awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'

-include $(OBJS:.o=.d) $(SKELETONS:$(BUILD)/%.skel.h=$(BUILD)/bpf/%.bpf.d) $(UNIT_TESTS:=.d)

endif
