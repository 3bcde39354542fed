"""Programs of a benchmark: started in a directory, awaited, ended."""
import json
import re
import signal
import subprocess
import sys
import time

# The key that clients of a benchmark's gateway show, and its SHA-256.
KEY = "password"
KEY_SHA256 = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"


class Programs:
    """Starts programs in a directory and ends them."""

    def __init__(self, binaries, directory):
        self.binaries, self.directory, self.running = binaries, directory, []

    def path(self, name):
        return str(self.directory / name)

    def command(self, program, *arguments):
        return [str(self.binaries / program), *map(str, arguments)]

    def run(self, program, *arguments):
        done = subprocess.run(self.command(program, *arguments), cwd=self.directory,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program}: {done.stderr}{done.stdout}")
        return done.stdout

    def start(self, core, ready, log, program, *arguments):
        """Starts a program on a core; returns what the pattern `ready` finds in its output."""
        with open(self.path(log), "w") as out:
            process = subprocess.Popen(
                ["taskset", "-c", str(core), *self.command(program, *arguments)],
                cwd=self.directory, stdout=out, stderr=out)
        self.running.append(process)
        for _ in range(600):
            found = re.search(ready, (self.directory / log).read_text())
            if found:
                return found.group(1)
            if process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"{program} does not start:\n{(self.directory / log).read_text()}")

    def end(self):
        for process in self.running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.running = []

    def start_gateway(self, core, services, *arguments):
        """Starts orrery-gateway with a table of services; returns its address."""
        table = {"epoch": 1, "keys": [{"sha256": KEY_SHA256, "name": "bench"}],
                 "services": services}
        (self.directory / "table.json").write_text(json.dumps(table))
        return self.start(core, r'address="([\d.:]+)"', "gateway.log", "orrery-gateway", "--listen",
                          "127.0.0.1:0", "--table", "table.json", *arguments)
