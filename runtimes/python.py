# What `python3 -c` of a pool runs: imports what the template preloads, says that it is ready, waits
# at its control socket for a program, and then is that program, as if `python3 -c` had been given
# it: the same __main__, the same tracebacks, the same exit codes.
#
# Others may begin from its memory while it waits (docs/internals/warm.md): whoever finds another
# socket than the one it said "ready" to is a copy, and makes anew what must not be the same twice.
# A rehearsal has it do so ahead of its program, and say "ready" once more. Where a whole machine is
# copied the socket is the same, and the agent beside it says so before anybody else says anything.
#
# A message is its length (4 bytes, little-endian) and fields that end in a zero byte: the code,
# then the whole environment. An empty one makes it the interpreter of a context instead
# (python_context.py). Preloaded modules are named by the variable ATOLL_PRELOAD; ATOLL_ZYGOTE says
# that others will begin from it, so what takes long is worth doing ahead.


def _atoll_wait(make_context):
    import gc
    import os
    import sys

    control = 5
    hooks, register = [], os.register_at_fork

    def remember(*, before=None, after_in_parent=None, after_in_child=None):
        given = {"before": before, "after_in_parent": after_in_parent}
        given["after_in_child"] = after_in_child
        register(**{name: hook for name, hook in given.items() if hook is not None})
        hooks.append(after_in_child)

    for name, hook in (("random", "seed"), ("threading", "_after_fork")):
        if name in sys.modules:  # by the site's own configuration, before this
            hooks.append(getattr(sys.modules[name], hook))
    os.register_at_fork = remember
    for name in os.environ.pop("ATOLL_PRELOAD", "").split():
        try:
            __import__(name)
        except Exception:
            pass  # the program that needs it will say why it cannot be imported
    if "ssl" in sys.modules:  # what IPython imports draws nothing from it, and to add costs memory
        hooks.append(lambda: sys.modules["ssl"].RAND_add(os.urandom(32), 32.0))
    serve_context = make_context("ATOLL_ZYGOTE" in os.environ)
    if "ATOLL_ZYGOTE" in os.environ and "threading" in sys.modules:
        _atoll_forget_threads()
    for name in ("ATOLL_ZYGOTE", "GLIBC_TUNABLES", "LD_BIND_NOW"):
        os.environ.pop(name, None)
    os.register_at_fork = register
    compile("pass", "<string>", "exec")  # the first time costs a millisecond
    modules = set(sys.modules)
    socket = os.fstat(control).st_ino
    gc.collect()
    gc.freeze()  # so that a collection at the end looks at the program's own objects only
    message = b""
    rehearsal, renewal = b"\xff\xff\xff\xff", b"\xfe\xff\xff\xff"  # longer than any message
    while not message:
        os.write(control, b"ready\n")
        while len(message) < 4 or len(message) < 4 + int.from_bytes(message[:4], "little"):
            piece = os.read(control, 65536)
            if not piece:
                os._exit(0)
            message += piece
            if message in (rehearsal, renewal):
                break
        found = os.fstat(control).st_ino
        if found != socket or message == renewal:
            socket = found
            _atoll_renew(hooks)
        if message == rehearsal:
            _atoll_rehearse(modules)
        if message in (rehearsal, renewal):
            message = b""
    if len(message) == 4:
        serve_context()
    os.close(control)
    code, *variables = message[4:].split(b"\0")[:-1]
    for name in list(os.environ):
        if name not in ("HOME", "USER", "LOGNAME", "SHELL"):  # of the user; may be given too
            del os.environ[name]
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    code = code.decode()
    sys.orig_argv[:] = ["python3", "-c", code]
    return code, modules


# Of a thread that a module started and ended the C library keeps the stack, which cannot be
# copied. Of one that is waited for it does not, and gives up the others too (GLIBC_TUNABLES).
def _atoll_forget_threads():
    with open("/proc/self/maps") as maps:
        if not any(" ---p 00000000 00:00 0 " in line for line in maps):
            return
    import ctypes

    library, thread = ctypes.CDLL(None), ctypes.c_ulong()
    begin = ctypes.cast(library.getpid, ctypes.c_void_p)
    if library.pthread_create(ctypes.byref(thread), None, begin, None) == 0:
        library.pthread_join(thread, None)


# What the modules themselves do after a fork, and what they do not: a copy may even have the number
# of its zygote, which is all that some look at.
def _atoll_renew(hooks):
    import os
    import sys

    for hook in hooks:
        if hook is not None:
            hook()
    modules = sys.modules
    if "numpy.random" in modules:
        modules["numpy.random"].seed()
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = None
    if "uuid" in modules:  # the C library would go on with the node and the sequence that it has
        uuid = modules["uuid"]
        uuid._generate_time_safe = uuid._last_timestamp = None
        uuid._node = uuid._random_getnode()
    if "multiprocessing.process" in modules:
        modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    if "platform" in modules:
        modules["platform"]._uname_cache = None


# Looks at the new ones only: to look at a module is to change its reference count, and with that a
# page of memory that a copy shares.
def _atoll_added(modules):
    import sys

    added = []
    for name in reversed(sys.modules):
        if name in modules:
            break
        added.append(sys.modules[name])
    if len(modules) + len(added) != len(sys.modules):  # some were taken away
        return [module for name, module in sys.modules.items() if name not in modules]
    return added[::-1]


def _atoll_destroy(spaces):
    for space in spaces:
        for private in (True, False):
            for name in list(space):
                if name != "__builtins__" and private == (name[:1] == "_" and name[1:2] != "_"):
                    space[name] = None


# Ends the process without the teardown of an interpreter, which takes longer than most programs:
# threads are waited for, exit functions run, and what the program made is destroyed, so its files
# are flushed and its __del__ are called. Returns, for the usual end, where C code may have more to
# do at exit, or where something failed.
def _atoll_leave(status, names, modules, added_since=_atoll_added, destroy=_atoll_destroy):
    import gc
    import os
    import sys

    added = added_since(modules)
    for module in added:
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "origin", None) and not spec.origin.endswith(".py"):
            if spec.origin not in ("built-in", "frozen"):
                return
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()
    destroy([names] + [getattr(module, "__dict__", {}) for module in added])
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(status)


def _atoll_run(code, names, leave, modules):
    import sys

    status = 0
    try:
        exec(compile(code, "<string>", "exec", dont_inherit=True), names)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        status = (end.code or 0) & 0xFF
    except BaseException as error:
        trace = error.__traceback__.tb_next
        error.__traceback__ = trace
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error, trace)
        if isinstance(error, KeyboardInterrupt):
            import os
            import signal

            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        status = 1
        del error, trace
        sys.last_value = sys.last_traceback = None
    try:
        leave(status, names, modules)
    except Exception:
        pass  # the usual end says what is wrong
    sys.exit(status)


# Does what most programs do: the memory which that changes is a copy's own before it counts.
def _atoll_rehearse(modules):
    import atexit
    import gc
    import io
    import os
    import sys

    program = "import sys\nclass A: pass\ntry:\n  [A() for _ in range(9)] + [1 / 0]\n" \
        "except ArithmeticError as error: text = f'{error} {sys.argv} {3.5}'\nprint(1, file=out)\n"
    names = dict(globals(), out=io.TextIOWrapper(io.BytesIO(), line_buffering=True))

    def end(status, names, modules):
        _atoll_destroy([names] + [module.__dict__ for module in _atoll_added(modules)[:0]])
        atexit.unregister(end)

    try:
        _atoll_run(program, names, end, modules)
    except SystemExit:
        pass
    for name, value in list(os.environ.items()) + [("ATOLL_REHEARSED", "")]:
        os.environb[os.fsencode(name)] = os.fsencode(value)
    del os.environ["ATOLL_REHEARSED"]
    for stream in (sys.stdout, sys.stderr):
        print("", end="", file=stream, flush=True)
    gc.collect()


def _atoll_main(names):
    code, modules = names["_atoll_wait"](names["_atoll_context"])
    run, leave = names["_atoll_run"], names["_atoll_leave"]
    for name in [name for name in names if name.startswith("_atoll_")]:
        del names[name]
    run(code, names, leave, modules)


_atoll_main(globals())
