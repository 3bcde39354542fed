"""Runs a JAX program as one process of a job that Orrery has launched.

    python3 -m orrery_jax PROGRAM.py [ARGUMENT...]

JAX takes the number of processes and its own place among them from a cluster that it detects, or as
arguments, and from no variable of its own. This hands it what the launch contract says, then runs
the program as `python3 PROGRAM.py` would. PYTHONPATH leads here in every job of `framework: jax`.
"""

import os
import runpy
import sys

_CONTRACT = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


def _main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python3 -m orrery_jax PROGRAM.py [ARGUMENT...]")
    missing = [name for name in _CONTRACT if name not in os.environ]
    if missing:
        sys.exit(f"orrery_jax: {', '.join(missing)} not set: expected in a job of framework: jax")
    address, processes, process = (os.environ[name] for name in _CONTRACT)

    import jax

    jax.distributed.initialize(
        coordinator_address=address, num_processes=int(processes), process_id=int(process)
    )
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _main()
