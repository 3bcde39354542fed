"""A small training program for scripts/check_gpu: prints a line of JSON a fact.

Environment: PROBE_STEPS (200), PROBE_CHECKPOINT (a file; none: no checkpoints). Backend nccl where a device is seen,
else gloo. Each rank trains a linear layer of 8,192 columns in bf16 (256 in float on processors) on its own data.
"""
import json
import os
import time

import torch
import torch.distributed as dist

steps = int(os.environ.get("PROBE_STEPS", "200"))
checkpoint = os.environ.get("PROBE_CHECKPOINT")
on_device = torch.cuda.is_available()
device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if on_device else "cpu")
width = 8192 if on_device else 256
kind = torch.bfloat16 if on_device else torch.float32

if on_device:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_device else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def tell(**facts):
    print(json.dumps({"rank": rank, **facts}), flush=True)


torch.manual_seed(rank)
layer = torch.nn.Linear(width, width, bias=False, device=device, dtype=kind)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e3 if on_device else 1)
begin = 0
if checkpoint and os.path.exists(checkpoint):
    state = torch.load(checkpoint, map_location=device, weights_only=True)
    layer.load_state_dict(state["layer"])
    begin = state["step"]
tell(pid=os.getpid(), torch=torch.__version__, backend=dist.get_backend(), world=world, resumed=begin,
     devices=torch.cuda.device_count(), device=torch.cuda.get_device_name(device) if on_device else "cpu",
     visible=os.environ.get("CUDA_VISIBLE_DEVICES"))

# The sum over ranks of rank + 1.
numbers = torch.full((64 << 20 if on_device else 1 << 16,), float(rank + 1), device=device)
dist.all_reduce(numbers)
if on_device:
    torch.cuda.synchronize()
since = time.monotonic()
dist.all_reduce(numbers)
if on_device:
    torch.cuda.synchronize()
seconds = time.monotonic() - since
expected = world * (world + 1) / 2 * world
tell(sum_right=bool((numbers == expected).all()), all_reduce_gbs=round(numbers.numel() * 4 / seconds / 1e9, 1))

data = torch.randn(width, width, device=device, dtype=kind)
since = time.monotonic()
for step in range(begin, steps):
    optimizer.zero_grad()
    loss = (layer(data) ** 2).mean()
    loss.backward()
    for parameter in layer.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    if on_device:
        torch.cuda.synchronize()
    else:
        time.sleep(0.02)
    if (step + 1) % 50 == 0:
        taken = time.monotonic() - since
        # Two products forward and backward need: the data has no gradient.
        tell(step=step + 1, loss=loss.item(), tflops=round(50 * 4 * width**3 / taken / 1e12, 1))
        since = time.monotonic()
        if checkpoint and rank == 0:
            torch.save({"layer": layer.state_dict(), "step": step + 1}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
dist.destroy_process_group()
