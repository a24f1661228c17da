# SPDX-License-Identifier: BSD-2-Clause
"""The hazards: one row each, and what some of them do beside the target."""
import dataclasses
import os
import shutil
import signal
import sys


@dataclasses.dataclass
class Hazard:
    """A row. prepare(run) is called before kxray attaches, beside(run) is a generator that is resumed before
    the target works and after it has ended."""
    name: str
    target: str
    arguments: tuple = ()
    functions: tuple = ("hz_*",)
    status: int = 0
    prepare: object = None
    beside: object = None
    libraries: tuple = ()
    tools: tuple = ()
    files: tuple = ()                                        # one of them is there where it can be tried
    counts: dict = dataclasses.field(default_factory=dict)   # way: which counts are compared, or None
    without: dict = dataclasses.field(default_factory=dict)  # way: why it is left out
    also: tuple = ()                                         # ways that most rows leave out
    known: str = ""                                          # harm that README's limits state
    only: tuple = ()                                         # if given, the only ways
    off: int = 0                                             # calls that may end between their entry and the target's own count
    rewrites: bool = False                                   # the target changes its own code
    starter: tuple = ()                                      # the command that starts the target
    mode: int = 0                                            # permission bits of its file


# kxray starts the program in these ways: nothing can be done to it or beside it before.
_ATTACHED_ONLY = {way: "only for a running program" for way in ("command", "unasked")}
_UNCOUNTED = {way: None for way in ("attach", "command", "follow", "all", "return", "instruction", "none", "inprocess", "inprocess-follow",
                                   "inprocess-tools")}
_ALSO_ALONE = {"inprocess-tools": "uprobes of other tools harm it without kxray, too"}
_CORO = ("next", "yield", "leaf", "step", "signalled")
# Documented in kxray-safety(7); inprocess-tools has return probes of another kxray
_FORKS_IN_HANDLERS = {way: "return probes can end children that a handler has forked" for way in (
    "attach", "command", "follow", "all", "return", "inprocess-tools")}
# Documented in the help of --exits
_THROWS = {"return": "return probes abort programs that throw, as the help of --exits says"}


def sessions(number):
    def beside(run):
        others = [run.start_kxray(f"kxray-{n}", ["-p", str(run.target.pid)])
                  for n in range(2, number + 1)]
        for n, child in enumerate(others, 2):
            run.wait_for_kxray(child, f"kxray-{n}")
        yield
        for n, child in enumerate(others, 2):
            if run.end_of(child, f"kxray-{n}"):
                raise ValueError(f"kxray-{n}: {run.out(f'kxray-{n}', 'err')[-200:]}")
    return beside


def debugger(run, steps):
    """Attaches gdb, which takes STEPS when the target goes on; returns when it is ready for them."""
    armed = run.folder + "/armed"
    words = [word for step in steps + ["delete", "detach"] for word in ("-ex", step)]
    words[2:2] = ["-ex", f"shell touch {armed}"]
    child = run.start("gdb", ["gdb", "-nx", "-batch", "-p", str(run.target.pid), "-ex", "set pagination off"] + words)
    run.wait_for(lambda: os.path.exists(armed) or child.poll() is not None, "gdb does not attach")
    if child.poll() is not None:
        raise ValueError("gdb: " + run.out("gdb", "err")[-200:])
    return child


def gdb(run):
    """A debugger stops three times at a function that is not traced, and steps from there through traced ones."""
    child = debugger(run, ["break hz_outer", "continue", "stepi 300", "continue", "bt 3", "continue"])
    yield
    run.end_of(child, "gdb")
    if run.out("gdb").count("Breakpoint 1, ") < 3:
        raise ValueError("gdb: " + run.out("gdb")[-300:])


def gdb_same(run):
    """A debugger's breakpoints at traced functions. The kernel gives a trap to the probe, so the debugger may miss it."""
    child = debugger(run, ["rbreak ^hz_", "ignore 1 100", "continue", "bt 3", "delete", "continue"])
    yield
    run.end_of(child, "gdb")


def bpftrace(run):
    """bpftrace has probes at the same entries and returns."""
    child = run.start_bpftrace()
    yield
    run.stop(child, "bpftrace")


def delete(run):
    os.unlink(run.binary)


def replace(run):
    """As a package manager does: another file takes the name while the old one runs."""
    shutil.copy("/bin/true", run.binary + ".new")
    os.rename(run.binary + ".new", run.binary)


def beside_of(action):
    def beside(run):
        action(run)
        yield
    return beside


IN_PROCESS = ("inprocess", "inprocess-leave", "inprocess-late", "inprocess-follow", "inprocess-follow-late",
              "inprocess-tools")


def stop_and_go(run):
    """SIGSTOP and SIGCONT at random moments, all the time."""
    child = run.start("stopper", ["sh", "-c", "while kill -STOP $0 && sleep 0.00$(($$ % 7)) && kill -CONT $0; do sleep 0.003; done",
                                  str(run.target.pid)])
    yield
    run.end_of(child, "the stopper")


def freeze_and_thaw(run):
    """The target's group is frozen and thawed at random moments, all the time: in the middle of a stop, too, or of a borrowed call."""
    child = run.start("freezer", ["sh", "-c", "while kill -0 $0 && echo 1 > $1/cgroup.freeze && sleep 0.0$(($$ % 6)) && echo 0 > $1/cgroup.freeze; "
                                  "do sleep 0.0$(($$ % 4)); done", str(run.target.pid), run.group])
    yield
    run.end_of(child, "the freezer")


def stopped_before(run):
    """The target is stopped before kxray attaches, and goes on while it does or later."""
    os.kill(run.target.pid, signal.SIGSTOP)
    run.start("starter", ["sh", "-c", "sleep 0.$(($$ % 6)); kill -CONT $0", str(run.target.pid)])


def control_group(hierarchies, controls, busy=False, thaws=False):
    """
    A prepare that puts the target into a group of its own with these values, in the first of @hierarchies that exists. @busy: beside a
    process that uses all its CPU time. @thaws: the group, frozen before kxray attaches, goes on while it does or later.
    """
    def prepare(run):
        root = next(h for h in hierarchies if os.path.exists(f"{h}/cgroup.procs"))
        run.group = f"{root}/kxray-hazard.{run.target.pid}"
        os.mkdir(run.group)
        if busy:
            run.start("busy", ["sh", "-c", "while :; do :; done"])
        for name, value in [*(("cgroup.procs", child.pid) for child in run.children), *controls]:
            with open(f"{run.group}/{name}", "w", encoding="ascii") as f:
                f.write(str(value))
        if thaws:
            run.start("thaw", ["sh", "-c", "sleep 0.$(($$ % 6)); echo 0 > $0/cgroup.freeze", run.group])
    return prepare


def little_memory(run):
    """A group with a limit that leaves room for a few pages: copies of all of libc's are more."""
    control_group(["/sys/fs/cgroup/memory", "/sys/fs/cgroup"], [])(run)
    name, limit = ("usage_in_bytes", "limit_in_bytes") if run.group.startswith("/sys/fs/cgroup/memory") else ("current", "max")
    with open(f"{run.group}/memory.{name}", encoding="ascii") as f:
        used = int(f.read())
    with open(f"{run.group}/memory.{limit}", "w", encoding="ascii") as f:
        f.write(str(used + (512 << 10)))


def row(name, target, *arguments, **more):
    """A row of the in-process ways."""
    return Hazard(name, target, arguments, only=IN_PROCESS, **more)


def in_namespace(script):
    """Starts the target by a script in a mount namespace of its own, as "$0" with its arguments."""
    return ("unshare", "-m", "sh", "-ec", script)


_TMPFS = 'mkdir m; mount -t tmpfs t m; cp "$0" m; '
_MEMFD = """import os, sys
f = os.memfd_create("program")
os.write(f, open(sys.argv[1], "rb").read())
os.execve(f, sys.argv[1:], os.environ)"""
_NOT_COUNTED = {"inprocess": None, "inprocess-follow": None, "inprocess-tools": None}
_OWN_BEFORE = {"inprocess-follow": "own"}  # the target's own counts end where recording in process does
_DOUBLED = ("hz_*", "plugin.so:plugged")
_OWN_FAULT = "the program destroys what kxray has put into it"

HAZARDS = [
    Hazard("exceptions", "throw", without=_THROWS),
    Hazard("pthread_cancel", "cancel", without=_THROWS),
    Hazard("longjmp", "jump"),
    Hazard("swapcontext", "../targets/coro", functions=_CORO),
    Hazard("stack switch in assembly", "../targets/coro-asm", functions=_CORO + ("swap",)),
    # Mechanisms without sessions cannot look at the stack at each call.
    Hazard("generated stack switch", "generated", also=("multi", "single")),
    Hazard("the same in much code", "generated", ("much",), also=("multi", "single")),
    Hazard("the same in a memfd", "generated", ("unlinked",), also=("multi", "single")),
    Hazard("the same while traced", "generated", ("late",), also=("multi", "single")),
    Hazard("C++20 coroutines", "coroutine"),
    Hazard("Rust panics and threads", "panics", without=_THROWS),
    Hazard("Go growing stacks", "go-stacks", functions=("main.hz_*",)),
    Hazard("recursion of a million", "recursion"),
    Hazard("500 threads", "threads"),
    # Some ms pass until programs that children execute get uprobes for what is recorded in process.
    Hazard("fork vfork spawn", "processes", counts={"inprocess-follow": None}),
    Hazard("clone(CLONE_VM)", "clonevm"),
    # Only the last of the programs prints, with its own calls.
    Hazard("20 execs", "execs",
           counts={way: None for way in ("attach", "return", "instruction", "none", "inprocess", "inprocess-follow", "inprocess-tools")}),
    Hazard("seccomp strict", "seccomp"),
    Hazard("seccomp filter", "seccomp", ("filter",)),
    Hazard("signals on other stack", "signals"),
    Hazard("self-modifying and JIT", "patch", rewrites=True),
    Hazard("text dropped and read", "copied", counts=_UNCOUNTED),
    Hazard("text moved", "copied", ("moved",), counts=_UNCOUNTED, rewrites=True, known="the copy has the probes' breakpoints"),
    Hazard("own breakpoints and steps", "trap", rewrites=True),
    Hazard("own ptrace steps", "stepped"),
    Hazard("backtrace", "backtrace", known="return probes cut backtraces off"),
    Hazard("dlopen 1000 times", "plugins", libraries=("plugin.so",)),
    Hazard("namespaces", "namespaces"),
    # The program writes its own code over the probes.
    Hazard("XRay patches", "xray", counts=_UNCOUNTED, rewrites=True),
    Hazard("XRay patched before", "xray", ("before",), counts=_UNCOUNTED, rewrites=True, without=_ALSO_ALONE),
    Hazard("gdb beside", "calls-O2", functions=("hz_leaf",), beside=gdb, tools=("gdb",), without=_ATTACHED_ONLY),
    Hazard("gdb on same functions", "calls-O2", beside=gdb_same, tools=("gdb",), counts=_UNCOUNTED, without=_ATTACHED_ONLY),
    Hazard("bpftrace beside", "calls-O2", beside=bpftrace, tools=("bpftrace",), without=_ATTACHED_ONLY),
    Hazard("two sessions", "calls-O2", beside=sessions(2), without=_ATTACHED_ONLY),
    Hazard("three sessions", "calls-O2", beside=sessions(3), without=_ATTACHED_ONLY),
    Hazard("file deleted before", "calls-O2", prepare=delete, without=_ATTACHED_ONLY),
    Hazard("file replaced before", "calls-O2", prepare=replace, without=_ATTACHED_ONLY),
    Hazard("file deleted when traced", "calls-O2", beside=beside_of(delete), without=_ATTACHED_ONLY),
    Hazard("file replaced when traced", "calls-O2", beside=beside_of(replace), without=_ATTACHED_ONLY),
] + [Hazard("built " + name, "calls-" + name) for name in (
    "O0", "O1", "O2", "O3", "lto", "pg", "patchable", "split", "static", "static-pie", "cet", "no-plt", "pages", "clang")] + [
    # where there is swap space nothing is refused
    Hazard("little memory left", "calls-O2", functions=("libc.so*:*",), prepare=little_memory, counts=_UNCOUNTED, without=_ATTACHED_ONLY,
           only=("attach", "inprocess"), files=("/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/memory.max")),
    # A thread that is cancelled in a recorded call, or a handler that leaves one, takes the record's slot along.
    Hazard("async cancel", "async_cancel", off=300),
    Hazard("async cancel in C++", "async_cancel_cxx", off=300, without=_THROWS),
    row("siglongjmp out of signals", "async_jump", off=500),
    row("library loaded 1000 times", "plugins", functions=("hz_*", "plugin.so:plugged"), libraries=("plugin.so",)),
    row("another at its place", "plugins", "turns", functions=("hz_*", "plugin.so:plugged"), libraries=("plugin.so", "plugin-other.so")),
    row("library in namespaces", "doubled", functions=_DOUBLED, libraries=("plugin.so",)),
    # No uprobe can be added to only the later copies.
    row("library in later namespaces", "doubled", "late", functions=_DOUBLED, libraries=("plugin.so",), counts=_NOT_COUNTED),
    row("PR_SET_TSC", "no_tsc"),
    row("PR_SET_TSC by a later library", "late_no_tsc", libraries=("forbid_tsc.so",), counts=_OWN_BEFORE),
    row("the same by syscall()", "late_no_tsc", "syscall", libraries=("forbid_tsc.so",), counts=_OWN_BEFORE),
    row("the same at a recorded prctl", "late_no_tsc", functions=("hz_*", "libc.so.6:prctl"), libraries=("forbid_tsc.so",),
        counts=_OWN_BEFORE),
    row("the same among threads", "late_no_tsc", "threads", libraries=("forbid_tsc.so",), counts=_NOT_COUNTED),
    row("strict seccomp by a later one", "late_no_tsc", "strict", libraries=("forbid_tsc.so",), counts=_OWN_BEFORE),
    row("the same by seccomp()", "late_no_tsc", "strict by syscall", libraries=("forbid_tsc.so",), counts=_OWN_BEFORE),
    row("checksum of its code", "checksum", known="its functions begin with other bytes while they are recorded"),
    row("text moved without mprotect", "copied_mapped", "moved", rewrites=True, without=_ALSO_ALONE),
    Hazard("restartable sequences", "restarted"),
    row("raw threads", "raw_threads"),
    row("raw threads with own TLS", "raw_threads", "own"),
    row("raw threads without TLS", "raw_threads", "none"),
    row("raw threads with short TLS", "raw_threads", "end"),
    row("thread pointer by a call", "segments"),
    row("thread pointer by instruction", "segments_instruction"),
    row("gs", "flags", "gs"),
    row("dispatched system calls", "dispatch"),
    row("hidden dispatch", "dispatch_hidden", counts=_NOT_COUNTED),
    Hazard("dispatch and uprobes", "dispatch", ("20",), without=dict.fromkeys(IN_PROCESS, "see the row above")),
    Hazard("hidden dispatch and uprobes", "dispatch_hidden", ("20",), without=dict.fromkeys(IN_PROCESS, "see the row above")),
    row("aligned accesses", "flags", "aligned"),
    row("string instructions down", "flags", "down"),
    row("x87 and MXCSR", "flags", "float"),
    row("write to a slow pipe", "transfers", "write"),
    row("send to a slow socket", "transfers", "send"),
    row("sendmsg to a slow socket", "transfers", "sendmsg"),
    row("recv with MSG_WAITALL", "transfers", "all"),
    row("copies and least reads", "bulk"),
    row("random bytes all the time", "bulk", "getrandom"),
    row("io_uring and aio", "rings"),
    row("faults by a table", "faults"),
    row("thrown faults", "thrown_faults", without=_ALSO_ALONE),
    Hazard("thrown faults as in Ada", "thrown_faults_ada", without=_THROWS),
    row("no writable code", "limits", "mdwe"),
    row("no writable code, later", "limits", "mdwe-late"),
    row("sealed code", "limits", "sealed"),
    row("sealed code, later", "limits", "sealed-late"),
    row("limited address space", "limits", "address-space"),
    row("limited data", "limits", "data"),
    row("no mapping left", "limits", "mappings"),
    row("few addresses near", "limits", "narrow", functions=("*",)),
    # its own functions are left to uprobes
    row("no address near", "limits", "full", functions=("*", "libc.so*:f*")),
    row("locked memory", "limits", "locked"),
    row("executable memory", "limits", "executable"),
    row("limited real-time", "limits", "real-time"),
    row("stack that grows", "limits", "grows"),
    row("garbage in records", "hostile", "slots", counts=_NOT_COUNTED),
    row("garbage in all of it", "hostile", "all", counts=_NOT_COUNTED, known=_OWN_FAULT),
    row("areas unmapped", "hostile", "unmap", counts=_NOT_COUNTED, known=_OWN_FAULT),
    row("vfork+exec all the time", "churn", "vfork"),
    row("exec all the time", "execs", "100", counts=_NOT_COUNTED),
    row("posix_spawn all the time", "churn", "spawn"),
    row("fork all the time", "churn", "fork"),
    # Children can leave a call of theirs in the rings.
    Hazard("fork out of signals", "signal_fork", off=1000, without=_FORKS_IN_HANDLERS),
    # Their children do not know their ids, and lose the jumps for uprobes.
    row("raw fork all the time", "churn", "raw", counts={"inprocess-follow": None}),
    row("threads all the time", "churn", "threads"),
    row("exit at once", "churn", "exit", counts=_NOT_COUNTED),
    row("tiny signal stack", "stacks", "signals"),
    row("end of the stack", "stacks", "end"),
    row("signal stack on a stack", "stacks", "inside"),
    row("coroutine on a stack", "stacks", "part"),
    # Waits that begin their time anew with each recording never end with recordings all the time; the others must.
    row("waits that keep their time", "waiting", "kept"),
    row("waits by time", "waiting", "time", without={"inprocess-late": "waits that begin anew each time"}),
    row("waits with little CPU time", "waiting", "kept",
        prepare=control_group(["/sys/fs/cgroup/cpu"], [("cpu.cfs_period_us", 500000), ("cpu.cfs_quota_us", 2000)], busy=True),
        files=("/sys/fs/cgroup/cpu/cgroup.procs",)),
    row("waits with signals", "waiting", "signals"),
    row("registers and red zone", "registers"),
    row("carry flag as result", "registers", "carry"),
    row("SIGSTOP and SIGCONT", "churn", "threads", beside=stop_and_go),
    row("stopped while attached", "churn", "fork", prepare=stopped_before),
    row("frozen while attached", "churn", "fork",
        prepare=control_group(["/sys/fs/cgroup/unified", "/sys/fs/cgroup"], [("cgroup.freeze", 1)], thaws=True),
        files=("/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/cgroup.procs")),
    row("frozen at any moment", "churn", "threads", prepare=control_group(["/sys/fs/cgroup/unified", "/sys/fs/cgroup"], []), beside=freeze_and_thaw,
        files=("/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/cgroup.procs")),
    row("built musl", "calls-musl"),
    row("built musl-static", "calls-musl-static"),
    row("built asan", "calls-asan"),
    row("built tsan", "calls-tsan"),
    row("built ubsan", "calls-ubsan"),
    row("built noseparate-code", "calls-noseparate"),
    row("valgrind", "calls-O2", starter=("valgrind", "-q"), tools=("valgrind",), without=_ALSO_ALONE),
    row("qemu-user", "calls-O2", starter=("qemu-x86_64",), tools=("qemu-x86_64",), without=_ALSO_ALONE),
    row("user namespace", "calls-O2", starter=("unshare", "-Ur"), tools=("unshare",)),
    row("another root", "calls-O2", starter=in_namespace('mkdir m; mount --rbind / m; exec chroot m "$0" "$@"'), tools=("unshare",)),
    row("another file at its path", "calls-O2", starter=in_namespace('cp "$0" p; mount --bind /bin/true "$0"; exec ./p "$@"'),
        tools=("unshare",)),
    row("tmpfs", "calls-O2", starter=in_namespace(_TMPFS + 'exec m/${0##*/} "$@"'), tools=("unshare",)),
    row("overlayfs", "calls-O2", starter=in_namespace(_TMPFS + 'mkdir m/u m/w o; mount -t overlay o -o lowerdir=.,upperdir=m/u,workdir=m/w o; '
                                                      'exec o/${0##*/} "$@"'), tools=("unshare",)),
    row("program in a memfd", "calls-O2", starter=(sys.executable, "-c", _MEMFD)),
    row("setuid", "calls-O2", starter=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"), mode=0o4755,
        tools=("setpriv",)),
]
