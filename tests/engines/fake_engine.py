#!/usr/bin/env python3
"""A server with the faults of an inference engine, for tests of what supervises one.

  fake_engine.py serve DIRECTORY .. --port PORT ..

It takes the arguments of `vllm serve`. Files in DIRECTORY say how it behaves, looked at with each
request:

  loading   /health is 503           sick      /health is 500
  nonsense  answers are no JSON      half      answers end half way
  empty     answers have no tokens   hang      answers do not come
  silent    there are no metrics     running   metrics count so many requests
  full      answers are 429          counts    metrics count tokens, more each time
  uncounted metrics count no tokens  pace      seconds of a token, in place of 0.002
  exit      at its start it ends with this status
  child     at its start it starts a process in a session of its own, and writes its number here
  deaf      SIGTERM has no effect

It writes its own number to `pid`, its arguments to `arguments`, and `term` when SIGTERM arrives.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOME = pathlib.Path(sys.argv[2])
COUNTED = []


def told(name):
    path = HOME / name
    return path.read_text() if path.exists() else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) * 2 if told("half") is not None else len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if told("half") is not None:
            self.close_connection = True

    def do_GET(self):
        if self.path == "/health":
            status = 503 if told("loading") is not None else 500 if told("sick") is not None else 200
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/metrics" and told("silent") is None:
            if told("counts") is not None:
                COUNTED.append(1)
            counted = f"vllm:generation_tokens_total {len(COUNTED)}\n" if told("uncounted") is None else ""
            self.answer(200, f"{counted}"
                        f"vllm:num_requests_running {told('running') or 0}\n"
                        "vllm:num_requests_waiting 0.0\n"
                        'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n',
                        "text/plain")
        else:
            self.answer(404, "{}")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if told("hang") is not None:
            threading.Event().wait()
        if told("full") is not None:
            return self.answer(429, "{}")
        words = len(asked["prompt"].split())
        if words > 64:
            return self.answer(400, '{"error": {"message": "the context is 64 tokens"}}')
        if told("nonsense") is not None:
            return self.answer(200, "<html>it works</html>")
        time.sleep(float(told("pace") or 0.002) * asked["max_tokens"])
        tokens = 0 if told("empty") is not None else asked["max_tokens"]
        self.answer(200, json.dumps({
            "object": "text_completion", "model": asked["model"],
            "choices": [{"index": 0, "text": " a" * tokens, "finish_reason": "length"}],
            "usage": {"prompt_tokens": words, "completion_tokens": tokens}}))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main():
    (HOME / "arguments").write_text(" ".join(sys.argv[1:]))
    (HOME / "pid").write_text(str(os.getpid()))
    if told("child") is not None:
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        (HOME / "child").write_text(str(child.pid))
    if told("exit") is not None:
        sys.exit(int(told("exit")))

    def end(*_):
        (HOME / "term").write_text("")
        if told("deaf") is None:
            os._exit(0)

    signal.signal(signal.SIGTERM, end)
    Server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()


main()
