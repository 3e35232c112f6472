# What `python3 -c` of a pool begins with. Its argument is the source of all the rest (python.py),
# which a child compiles: what a compiler leaves behind would be a quarter of the memory that a
# waiting interpreter has, and of the time that its end takes.
def _atoll_compiled(source):
    import marshal
    import os

    try:
        back, forth = os.pipe()
        child = os.fork()
    except OSError:
        return source
    if child == 0:
        try:
            with open(forth, "wb") as pipe:
                marshal.dump(compile(source, "<string>", "exec"), pipe)
        finally:
            os._exit(0)
    os.close(forth)
    data = piece = os.read(back, 1 << 20)
    while piece:
        piece = os.read(back, 1 << 20)
        data += piece
    os.close(back)
    os.waitpid(child, 0)
    try:
        return marshal.loads(data)
    except (EOFError, ValueError, TypeError):
        return source  # there was no memory, or no time, for it


exec(_atoll_compiled(__import__("sys").argv.pop()))
