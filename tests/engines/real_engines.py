#!/usr/bin/env python3
"""Runs inference engines of others under Orrery, with a tiny model: those that
scripts/setup --for frameworks has installed into build/frameworks.

  real_engines.py BIN [--engine vllm|llamacpp] [--record DIRECTORY]

BIN holds the programs of Orrery. For each engine:

  1. orrery-engine reports loading, warming and ready, with slots and a pace.
  2. SIGTERM while requests run: each gets its whole answer, then all processes are gone, status 0.
  3. orrery-engine is killed: within seconds no process of the engine is left.
  4. A cluster of `orrery up` serves it: a client asks the gateway, the engine is killed and comes
     again, `orrery cancel` leaves no process.

--record keeps what the engines answer to questions for their metrics.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FRAMEWORKS = ROOT / "build" / "frameworks"
VLLM = FRAMEWORKS / "vllm" / "bin"
LLAMACPP = FRAMEWORKS / "llama.cpp"
SECONDS_MAX = 600

ENGINES = {
    "vllm": {
        "program": VLLM / "vllm", "artifact": "hub", "slots": 4, "tokens": 400,
        "arguments": ["--max-num-seqs", "4", "--max-model-len", "1024", "--dtype", "bfloat16",
                      "--shutdown-timeout", "30"],
        "environment": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
                        "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1"}},
    "llamacpp": {
        "program": LLAMACPP / "build" / "bin" / "llama-server", "artifact": "tiny.gguf", "slots": 4,
        "tokens": 1900,
        "arguments": ["-np", "4", "-c", "8192", "-t", "1"], "environment": {}},
}


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def wait_for(condition, what):
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        expect(time.monotonic() < end, f"in {SECONDS_MAX} s there was not: {what}")
        time.sleep(0.1)


def processes_with(text):
    found = []
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (each / "environ").read_bytes()
            state = (each / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if text.encode() in environment and state != "Z":
            found.append(int(each.name))
    return found


def ask(url, model, tokens, key=None):
    body = json.dumps({"model": model, "prompt": "a b c", "max_tokens": tokens, "temperature": 0,
                       "ignore_eos": True}).encode()
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = "Bearer " + key
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body, headers),
                                timeout=SECONDS_MAX) as answer:
        return json.load(answer)["usage"]["completion_tokens"]


class Replica:
    """An engine under orrery-engine, and what it has reported."""

    def __init__(self, programs, name, models, scratch):
        self.mark = f"ORRERY_TEST_MARK={scratch}"
        engine = ENGINES[name]
        self.pipe = scratch / "progress"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.log = scratch / "log"
        self.reports = []
        self.unread = b""
        self.process = subprocess.Popen(
            [programs / "orrery-engine", "--engine", name, "--artifact", models / engine["artifact"],
             "--model", "lab/tiny", "--program", engine["program"], "--", *engine["arguments"]],
            env={**os.environ, **engine["environment"], "ORRERY_PROGRESS": str(self.pipe),
                 "ORRERY_ADDRESS": "127.0.0.1", "ORRERY_TEST_MARK": str(scratch)},
            stdout=open(self.log, "wb"), stderr=subprocess.STDOUT, cwd=scratch)

    def phases(self):
        try:
            self.unread += os.read(self.reader, 1 << 16)
        except BlockingIOError:
            pass
        *lines, self.unread = self.unread.split(b"\n")
        self.reports += [line["replica"] for line in map(json.loads, lines) if "replica" in line]
        return [report["phase"] for report in self.reports]

    def wait_ready(self):
        def ready():
            expect(self.process.poll() is None, "the engine ended:\n" + self.log.read_text()[-6000:])
            return "ready" in self.phases()
        wait_for(ready, "a replica that is ready")
        return self.reports[-1]


def check_program(programs, name, models, record):
    engine = ENGINES[name]
    with tempfile.TemporaryDirectory() as scratch:
        begin = time.monotonic()
        replica = Replica(programs, name, models, pathlib.Path(scratch))
        ready = replica.wait_ready()
        print(f"{name}: ready after {time.monotonic() - begin:.1f} s: {json.dumps(ready)}")
        expect(replica.phases() == ["loading", "warming", "ready"], replica.phases())
        expect(ready["slots"] == engine["slots"], "slots are those of the arguments")
        expect(min(ready["prefill_tokens_s"], ready["step_s"], ready["step_full_s"]) > 0, "a pace")
        url = "http://" + ready["endpoint"]
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            tokens = engine["tokens"]
            answers = [clients.submit(ask, url, "lab/tiny", tokens) for _ in range(8)]
            time.sleep(0.5)
            if record:
                metrics = urllib.request.urlopen(url + "/metrics").read()
                (record / f"{name}.txt").write_bytes(metrics)
            left = sum(not answer.done() for answer in answers)
            expect(left > 0, "requests run when SIGTERM comes")
            begin = time.monotonic()
            replica.process.send_signal(signal.SIGTERM)
            counts = [answer.result() for answer in answers]
        expect(counts == [tokens] * 8, f"whole answers of a drained engine: {counts}")
        status = replica.process.wait(SECONDS_MAX)
        print(f"{name}: 8 requests ended whole, {left} after SIGTERM; drained in "
              f"{time.monotonic() - begin:.1f} s, status {status}")
        expect(status == 0, replica.log.read_text()[-4000:])
        expect(replica.phases()[-1] == "draining", replica.phases())
        expect(not processes_with(replica.mark), "processes are left")
    with tempfile.TemporaryDirectory() as scratch:
        replica = Replica(programs, name, models, pathlib.Path(scratch))
        replica.wait_ready()
        count = len(processes_with(replica.mark))
        expect(count >= 3, "program, guard and engine")
        begin = time.monotonic()
        replica.process.kill()
        replica.process.wait()
        wait_for(lambda: not processes_with(replica.mark), "an end of all processes")
        print(f"{name}: orrery-engine was killed; its {count - 1} processes were gone after "
              f"{time.monotonic() - begin:.2f} s")


def check_cluster(programs, name, models):
    engine = ENGINES[name]
    with tempfile.TemporaryDirectory() as scratch:
        def orrery(*arguments):
            done = subprocess.run([programs / "orrery", "--dir", f"{scratch}/c", *arguments],
                                  capture_output=True, text=True, timeout=SECONDS_MAX)
            expect(done.returncode == 0, f"{arguments}: {done.stderr}")
            return done.stdout

        def replica():
            return json.loads(orrery("-o", "json", "job", "0"))["service"]["replicas"][0]

        spec = {"apiVersion": "orrery/v1", "kind": "Serve", "name": "tiny",
                "restart": {"policy": "at-once", "max": 5}, "roles": [{"accelerators": 1}],
                "revisions": [{"model": "lab/tiny", "artifact": str(models / engine["artifact"]),
                               "engine": {"name": name, "program": str(engine["program"]),
                                          "arguments": engine["arguments"],
                                          "environment": {**engine["environment"],
                                                          "TEST_MARK": scratch}}}]}
        pathlib.Path(scratch, "tiny.yaml").write_text(json.dumps(spec))
        orrery("up", "--nodes", "1", "--accelerators", "1")
        try:
            orrery("submit", f"{scratch}/tiny.yaml")
            wait_for(lambda: replica()["state"] == "ready", "a service that is ready")
            made = json.loads(orrery("-o", "json", "serve", "--key", "tiny"))
            tokens = ask(made["endpoint"], "lab/tiny", 20, made["api_key"])
            expect(tokens == 20, f"{tokens} tokens through the gateway")
            mark = f"TEST_MARK={scratch}"
            first = replica()["pid"]
            os.kill(int(first), signal.SIGKILL)
            wait_for(lambda: replica()["pid"] != first and replica()["state"] == "ready",
                     "a replica that was started again")
            expect(ask(made["endpoint"], "lab/tiny", 20, made["api_key"]) == 20, "tokens again")
            orrery("cancel", "0")
            wait_for(lambda: not processes_with(mark), "an end of all processes of the service")
            print(f"{name}: served behind the gateway, came again after SIGKILL, ended by cancel")
        finally:
            orrery("down")


def main():
    parser = argparse.ArgumentParser(description="Runs real inference engines under Orrery.")
    parser.add_argument("bin", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--record", type=pathlib.Path)
    asked = parser.parse_args()
    missing = [name for name in asked.engine or ENGINES if not ENGINES[name]["program"].exists()]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; run scripts/setup --for frameworks")
    with tempfile.TemporaryDirectory() as models:
        subprocess.run([VLLM / "python", ROOT / "tests/engines/write_model.py", models,
                        LLAMACPP / "gguf-py"], check=True)
        for name in asked.engine or ENGINES:
            check_program(asked.bin, name, pathlib.Path(models), asked.record)
            check_cluster(asked.bin, name, pathlib.Path(models))
    print("real engines: all well")


main()
