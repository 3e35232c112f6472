# What `python3 -c` of a pool runs: imports what the template preloads, says that it is ready, waits
# at its control socket for a program, and then is that program, as if `python3 -c` had been given
# it: the same __main__, the same tracebacks, the same exit codes.
#
# A message is its length (4 bytes, little-endian) and fields that end in a zero byte: the code,
# then the whole environment. Preloaded modules are named by the variable ATOLL_PRELOAD.


def _atoll_wait():
    import gc
    import os
    import sys

    control = 5
    for name in os.environ.pop("ATOLL_PRELOAD", "").split():
        try:
            __import__(name)
        except Exception:
            pass  # the program that needs it will say why it cannot be imported
    compile("pass", "<string>", "exec")  # the first time costs a millisecond
    gc.collect()
    gc.freeze()  # so that a collection at the end looks at the program's own objects only
    os.write(control, b"ready\n")
    message = b""
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[:4], "little"):
        piece = os.read(control, 65536)
        if not piece:
            os._exit(0)
        message += piece
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
    return code


# Ends the process without the teardown of an interpreter, which takes longer than most programs:
# threads are waited for, exit functions run, and what the program made is destroyed, so its files
# are flushed and its __del__ are called. Returns, for the usual end, where C code may have more to
# do at exit, or where something failed.
def _atoll_leave(status, names, modules):
    import gc
    import os
    import sys

    added = {name: module for name, module in sys.modules.items() if name not in modules}
    for module in added.values():
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "origin", None) and not spec.origin.endswith(".py"):
            if spec.origin not in ("built-in", "frozen"):
                return
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()
    for space in [names] + [getattr(module, "__dict__", {}) for module in added.values()]:
        for private in (True, False):
            for name in list(space):
                if name != "__builtins__" and private == (name[:1] == "_" and name[1:2] != "_"):
                    space[name] = None
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


def _atoll_main(names):
    import sys

    code, modules = names["_atoll_wait"](), set(sys.modules)
    run, leave = names["_atoll_run"], names["_atoll_leave"]
    for name in ("_atoll_wait", "_atoll_run", "_atoll_leave", "_atoll_main"):
        del names[name]
    run(code, names, leave, modules)


_atoll_main(globals())
