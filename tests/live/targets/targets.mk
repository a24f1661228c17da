# SPDX-License-Identifier: BSD-2-Clause
#
# The target programs: each is built with exactly the flags that its purpose needs, never with
# the user's CFLAGS. Functions that call others start with a push; leaf functions may
# start with anything.

T := $(BUILD)/tests/targets
TARGET_FLAGS := -O2 -g -fno-omit-frame-pointer -fcf-protection=none \
		-D_GNU_SOURCE -Wall -Wextra -pthread -Itests/live/targets

TARGETS := $(addprefix $T/,touch counts counts-cet counts-nopie counts-static counts-stripped throws \
	     cancel longjmp deep sleeper victim dlopener plugin.so xrayed many demo hops fdo returns \
	     syscalls slow frames flight kernelcalls coro coro-asm coro-hidden \
	     tree tree-child treeplug.so late late-child slow_exit libuser bomb names waits hot timed pauses bursts steady values conditions remote)
TARGETS += $T/writable $T/changed $T/changeplug.so

TARGETS += $T/family $T/bystander $T/usdt $T/spins $T/forks_nop5 $T/long_call

# Libraries that come and go while calls are recorded in process.
TARGETS += $T/plugs $T/plug.so $T/plug_tsc.so

# Stopped, borrowed and patched without kxray's command: by build/tests/patcher.
TARGETS += $T/stopped $T/patched $T/ring_wait

$T/%: tests/live/targets/%.c tests/live/targets/target.h tests/live/targets/targets.mk
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) $(FLAGS) -o $@ $<

$T/ring_wait: tests/live/targets/io_ring.h

$T/counts-cet $T/counts-nopie $T/counts-static: tests/live/targets/counts.c \
		tests/live/targets/target.h tests/live/targets/targets.mk
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) $(FLAGS) -o $@ $<

$T/coro-asm $T/coro-hidden: tests/live/targets/coro.c tests/live/targets/target.h tests/live/targets/targets.mk
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) $(FLAGS) -DASM -o $@ $<

$T/usdt: tests/live/targets/usdt.c tests/live/targets/usdt_plain.c tests/live/targets/usdt_plain.h tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) -o $@ $(filter %.c,$^)

$T/counts-stripped: $T/counts
	$(call say,TARGET)
	$(Q)strip -o $@ $<

$T/throws: tests/live/targets/throws.cpp tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(TARGET_FLAGS) -o $@ $<

$T/plugin.so: tests/live/targets/plugin.cpp
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(TARGET_FLAGS) -shared -fPIC -o $@ $<

$T/treeplug.so: tests/live/targets/treeplug.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) -shared -fPIC -o $@ $<

$T/changeplug.so: tests/live/targets/changeplug.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) -shared -fPIC -o $@ $<

$T/plug_tsc.so: FLAGS := -DTSC
$T/plug.so $T/plug_tsc.so: tests/live/targets/plug.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) $(FLAGS) -shared -fPIC -o $@ $<

$T/tree $T/tree-child $T/libuser: tests/live/targets/tree.h

$T/late-child: tests/live/targets/late.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) -o $@ $<

$T/xrayed: tests/live/targets/xrayed.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -O1 -g -D_GNU_SOURCE -Itests/live/targets -fxray-instrument \
		-fxray-instruction-threshold=1 -o $@ $<

$T/many.c: tests/live/targets/gen_many.sh
	$(Q)mkdir -p $(@D)
	$(Q)$< 10000 > $@

$T/many: $T/many.c tests/live/targets/target.h
	$(call say,TARGET)
	$(Q)$(CC) $(TARGET_FLAGS) -O1 -g0 -o $@ $<

$T/coro-hidden: FLAGS := -DHIDDEN
TARGETS += $T/self_timed

# As Ubuntu and Fedora build programs: every function starts with endbr64.
$T/counts-cet: FLAGS := -fcf-protection=full
$T/counts-nopie: FLAGS := -fno-pie -no-pie
$T/counts-static: FLAGS := -static
# Static: no dynamic linker makes system calls before the program starts.
$T/syscalls: FLAGS := -static
# Unwinding by pthread_exit and pthread_cancel runs the cleanup handlers.
$T/cancel: FLAGS := -fexceptions
