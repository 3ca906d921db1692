"""Lives in a sandbox and does what the test outside says, one command per control connection.

Dials, looks up, sends datagrams and runs programs from inside; a dialled connection is handed to the test byte by
byte, with half-closes and resets as they come. A fresh control connection is opened whenever one is taken.
"""
import base64
import json
import os
import socket
import struct
import subprocess
import threading

CONTROL = ("127.0.0.1", 7)


def reply(control, value):
    control.sendall(json.dumps(value).encode() + b"\n")


def give_up(side):
    try:
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def copy(source, target):
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        give_up(source)
        give_up(target)


def tcp(control, address, port):
    try:
        dialled = socket.create_connection((address, port), 10)
    except ConnectionResetError:
        # Taken and reset before this program knew of it: a connection that ended at once.
        return reply(control, {"value": True})
    with dialled:
        dialled.settimeout(None)
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reply(control, {"value": True})
        back = threading.Thread(target=copy, args=(dialled, control))
        back.start()
        copy(control, dialled)
        back.join()


def lookup(control, name):
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    reply(control, {"value": [entry[4][0] for entry in found]})


def datagram(control, address, port, payload):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(2)
        sender.connect((address, port))
        sender.send(base64.b64decode(payload))
        reply(control, {"value": base64.b64encode(sender.recv(65536)).decode()})


def run(control, argv, env, stdin, seconds):
    done = subprocess.run(argv, input=base64.b64decode(stdin), capture_output=True, timeout=seconds, env={**os.environ, **env} if env.pop("CLEAR", None) is None else env)
    reply(control, {"value": {"code": done.returncode, "stdout": base64.b64encode(done.stdout).decode(), "stderr": base64.b64encode(done.stderr).decode()}})


def serve():
    with socket.create_connection(CONTROL) as control:
        control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = b""
        while not line.endswith(b"\n"):
            byte = control.recv(1)
            if not byte:
                return
            line += byte
        threading.Thread(target=serve).start()
        command, *arguments = json.loads(line)
        try:
            {"tcp": tcp, "lookup": lookup, "datagram": datagram, "run": run}[command](control, *arguments)
        except subprocess.TimeoutExpired:
            reply(control, {"error": "TimeoutExpired"})
        except OSError as error:
            try:
                reply(control, {"error": type(error).__name__, "message": str(error)})
            except OSError:
                pass


for _ in range(3):
    threading.Thread(target=serve).start()
