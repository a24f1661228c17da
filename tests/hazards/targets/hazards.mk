# SPDX-License-Identifier: BSD-2-Clause
#
# The hazards' targets, built with exactly the flags that each hazard needs. What this machine's compilers cannot build is
# left out with a message; run.py names it in its table.

H := $(BUILD)/tests/hazards
HAZARD_FLAGS := -g -fno-omit-frame-pointer -fcf-protection=none -D_GNU_SOURCE -Wall -Wextra -pthread \
		-Itests/live/targets
HAZARD_C := cancel jump recursion threads processes clonevm seccomp signals patch trap stepped plugins namespaces \
	    execs backtrace copied generated async_cancel async_jump no_tsc checksum raw_threads hostile churn stacks \
	    waiting registers loop limits transfers dispatch segments flags faults late_no_tsc rings doubled restarted \
	    bulk signal_fork
HAZARD_CXX := throw coroutine
# calls.c, once with each of these
HAZARD_BUILDS := O0 O1 O2 O3 lto pg patchable split static static-pie cet no-plt pages clang \
		 musl musl-static asan tsan ubsan noseparate

HAZARDS := $(addprefix $H/,$(HAZARD_C) $(HAZARD_CXX) $(HAZARD_BUILDS:%=calls-%) plugin.so xray panics go-stacks async_cancel_cxx \
	   dispatch_hidden segments_instruction copied_mapped thrown_faults thrown_faults_ada forbid_tsc.so plugin-other.so)

build-O0 := -O0
build-O1 := -O1
build-O2 := -O2 -fomit-frame-pointer
build-O3 := -O3 -march=x86-64-v2
build-lto := -O2 -flto
build-pg := -O2 -pg
build-patchable := -O2 -fpatchable-function-entry=7,2
build-split := -O2 -fsplit-stack -fuse-ld=gold
build-static := -O2 -static
build-static-pie := -O2 -static-pie -fPIE
build-cet := -O2 -fcf-protection=full -fstack-protector-all
build-no-plt := -O2 -fno-plt -no-pie -fno-pie
build-pages := -O2 -ffunction-sections -falign-functions=4096
build-clang := -O2
build-musl := -O2
build-musl-static := -O2 -static
build-asan := -O2 -fsanitize=address
build-tsan := -O2 -fsanitize=thread
build-ubsan := -O2 -fsanitize=undefined
build-noseparate := -O2 -Wl,-z,noseparate-code
compiler-clang := $(CLANG)
compiler-musl := musl-gcc
compiler-musl-static := musl-gcc

hazard-build = $(Q)mkdir -p $(@D); $(1) -o $@ $< || { rm -f $@; echo '  not built: $(@F)'; }

$(HAZARD_C:%=$H/%): $H/%: tests/hazards/targets/%.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS))

$(HAZARD_CXX:%=$H/%): $H/%: tests/hazards/targets/%.cpp
	$(call say,TARGET)
	$(call hazard-build,$(CXX) -O2 -std=c++20 $(HAZARD_FLAGS))

$(HAZARD_BUILDS:%=$H/calls-%): $H/calls-%: tests/hazards/targets/calls.c
	$(call say,TARGET)
	$(call hazard-build,$(or $(compiler-$*),$(CC)) $(HAZARD_FLAGS) $(build-$*))

$H/forbid_tsc.so: tests/hazards/targets/forbid_tsc.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS) -shared -fPIC)

$H/plugin.so $H/plugin-other.so: tests/hazards/targets/plugin.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS) -shared -fPIC)

$H/xray: tests/hazards/targets/xray.c
	$(call say,TARGET)
	$(call hazard-build,$(CLANG) -O1 $(HAZARD_FLAGS) -fxray-instrument -fxray-instruction-threshold=1 \
		-Wl$(comma)--export-dynamic)

$H/async_cancel_cxx: tests/hazards/targets/async_cancel.c
	$(call say,TARGET)
	$(call hazard-build,$(CXX) -x c++ -O2 -std=c++20 $(HAZARD_FLAGS))

$H/dispatch_hidden: tests/hazards/targets/dispatch.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS) -DHAZARD_HIDDEN)

$H/segments_instruction: tests/hazards/targets/segments.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS) -DHAZARD_INSTRUCTION)

$H/copied_mapped: tests/hazards/targets/copied.c
	$(call say,TARGET)
	$(call hazard-build,$(CC) -O2 $(HAZARD_FLAGS) -DHAZARD_MAPPED)

$H/thrown_faults: tests/hazards/targets/thrown_faults.cpp
	$(call say,TARGET)
	$(call hazard-build,$(CXX) -O2 -std=c++20 -fnon-call-exceptions $(HAZARD_FLAGS))

$H/thrown_faults_ada: tests/hazards/targets/thrown_faults.cpp
	$(call say,TARGET)
	$(call hazard-build,$(CXX) -O2 -std=c++20 -fnon-call-exceptions $(HAZARD_FLAGS) -DHAZARD_ADA)

# Cleanup handlers run when a thread is cancelled.
$H/cancel: HAZARD_FLAGS += -fexceptions

$H/panics: tests/hazards/targets/panics.rs
	$(call say,TARGET)
	$(call hazard-build,MAKEFLAGS= rustc --edition 2021 -O -g -C force-frame-pointers=yes)

# Debian's golang-1.19-go is not in the path. Without a compiler "not built" is all that is said.
GO := $(or $(shell command -v go),$(lastword $(wildcard /usr/lib/go-*/bin/go)),false)

$H/go-stacks: tests/hazards/targets/go/stacks.go
	$(call say,TARGET)
	$(call hazard-build,GOCACHE=$(abspath $(BUILD))/go-cache GOFLAGS=-mod=mod $(GO) build)

$(HAZARDS): tests/hazards/targets/hazard.h tests/hazards/targets/outer_leaf.h tests/hazards/targets/outer_leaf_threads.h tests/live/targets/target.h tests/hazards/targets/hazards.mk

comma := ,
