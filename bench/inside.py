# What programs cost behind a wall, seen from inside: run by `python3 -c`, prints one line of JSON.
# Each figure is the median of some tries.
import json, os, socket, statistics, sys, threading, time


def median_us(tries, count, work):
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        work(count)
        taken.append((time.perf_counter() - begin) * 1e6 / count)
    return statistics.median(taken)


def calls(count):
    for _ in range(count):
        os.getppid()


def forks(count):
    for _ in range(count):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def answer(listener):
    peer, _ = listener.accept()
    while data := peer.recv(1):
        peer.sendall(data)


def exchange(count):
    for _ in range(count):
        client.sendall(b"x")
        client.recv(1)


def write_file(count):
    piece = os.urandom(1 << 20)
    with open(place + "/large", "wb") as file:
        for _ in range(count):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    os.unlink(place + "/large")


def make_files(count):
    for i in range(count):
        with open(f"{place}/{i}", "w") as file:
            file.write("x")
    for i in range(count):
        os.unlink(f"{place}/{i}")


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=answer, args=(listener,), daemon=True).start()
client = socket.create_connection(listener.getsockname())
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
place = sys.argv[1]
os.makedirs(place, exist_ok=True)
figures = {"syscall": median_us(5, 20000, calls), "loopback": median_us(5, 200, exchange),
           "disk": median_us(3, 16, write_file), "files": median_us(3, 100, make_files)}
client.close()
listener.close()
time.sleep(0.05)  # the thread has ended: a fork copies one
figures["fork"] = median_us(5, 20, forks)
print(json.dumps(figures))
