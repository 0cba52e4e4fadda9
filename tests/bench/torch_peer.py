#!/usr/bin/python3
"""PyTorch peer of the speed benchmark: the same recipe, weights, batches and step count.

    torch_peer.py RECIPE WEIGHTS.safetensors TRACE.jsonl THREADS

TRACE is a trace of the trainer written with --contents: its ids, labels, positions and segments are
the batches. Prints one JSON object: seconds of each step, elapsed and of all processors, and the losses.
"""
import json
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F
import yaml


def read_safetensors(path):
    raw = open(path, "rb").read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(raw[8 + length + begin : 8 + length + end]), dtype=torch.float32)
        tensors[name] = torch.nn.Parameter(flat.view(entry["shape"]).clone())
    return tensors


def read_steps(path):
    for line in open(path, encoding="utf-8"):
        record = json.loads(line)
        if record["type"] == "step":
            yield record


class Llama:
    """The decoder of corpus/RECIPE.md in plain PyTorch operations, one fused call per product."""

    def __init__(self, model, weights):
        self.m = model
        self.w = weights
        self.head_dim = model["width"] // model["heads"]
        half = self.head_dim // 2
        frequency = float(model["rope_theta"]) ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.outer(torch.arange(model["context"], dtype=torch.float64), frequency)
        self.cos = torch.cat([angle.cos()] * 2, -1).float()
        self.sin = torch.cat([angle.sin()] * 2, -1).float()

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + float(self.m["norm_eps"])) * self.w[name]

    def rope(self, x, cos, sin):
        half = self.head_dim // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def layer(self, x, n, cos, sin, mask):
        p = f"model.layers.{n}."
        w, (rows, context, width) = self.w, x.shape
        heads, kv = self.m["heads"], self.m["kv_heads"]
        h = self.norm(x, p + "input_layernorm.weight")
        q = F.linear(h, w[p + "self_attn.q_proj.weight"]).view(rows, context, heads, -1).transpose(1, 2)
        k = F.linear(h, w[p + "self_attn.k_proj.weight"]).view(rows, context, kv, -1).transpose(1, 2)
        v = F.linear(h, w[p + "self_attn.v_proj.weight"]).view(rows, context, kv, -1).transpose(1, 2)
        q, k = self.rope(q, cos, sin), self.rope(k, cos, sin)
        if heads != kv:
            k = k.repeat_interleave(heads // kv, 1)
            v = v.repeat_interleave(heads // kv, 1)
        score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(self.head_dim))
        attention = F.softmax(score.masked_fill(mask, float("-inf")), -1) @ v
        x = x + F.linear(attention.transpose(1, 2).reshape(rows, context, width), w[p + "self_attn.o_proj.weight"])
        h = self.norm(x, p + "post_attention_layernorm.weight")
        gate = F.silu(F.linear(h, w[p + "mlp.gate_proj.weight"])) * F.linear(h, w[p + "mlp.up_proj.weight"])
        return x + F.linear(gate, w[p + "mlp.down_proj.weight"])

    def loss_sum(self, ids, labels, positions, segments):
        context = self.m["context"]
        visible = (segments[:, :, None] == segments[:, None, :]) & torch.ones(context, context).tril().bool()
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        x = F.embedding(ids, self.w["model.embed_tokens.weight"])
        for n in range(self.m["layers"]):
            x = self.layer(x, n, cos, sin, ~visible[:, None])
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        logits = F.linear(self.norm(x, "model.norm.weight"), head)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1), ignore_index=-100, reduction="sum")


def learning_rate(t, step):
    if step <= t["warmup"]:
        return float(t["lr"]) * step / t["warmup"]
    r = min(1.0, (step - t["warmup"]) / (t["schedule_steps"] - t["warmup"]))
    return float(t["lr_min"]) + (float(t["lr"]) - float(t["lr_min"])) * (1 + math.cos(math.pi * r)) / 2


def main():
    recipe = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
    torch.set_num_threads(int(sys.argv[4]))
    weights = read_safetensors(sys.argv[2])
    model, t = Llama(recipe["model"], weights), recipe["train"]
    matrices = [p for p in weights.values() if p.dim() > 1]
    vectors = [p for p in weights.values() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": float(t["weight_decay"])}, {"params": vectors, "weight_decay": 0.0}],
        lr=float(t["lr"]), betas=(float(t["beta1"]), float(t["beta2"])), eps=float(t["eps"]), foreach=True)
    shape = (t["rows"], recipe["model"]["context"])
    elapsed, processor, losses = [], [], []
    for record in read_steps(sys.argv[3]):
        batches = [
            [torch.tensor(record["contents"][key][i]).view(shape) for key in ("ids", "labels", "positions", "segments")]
            for i in range(t["grad_accum"])
        ]
        begin, begin_processor = time.perf_counter(), time.process_time()
        total = 0.0
        for batch in batches:
            loss = model.loss_sum(*batch) / record["supervised"]
            loss.backward()
            total += loss.item()
        if float(t["clip"]) > 0:
            torch.nn.utils.clip_grad_norm_(list(weights.values()), float(t["clip"]))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(t, record["step"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        elapsed.append(time.perf_counter() - begin)
        processor.append(time.process_time() - begin_processor)
        losses.append(total)
    print(json.dumps({"elapsed": elapsed, "processor": processor, "losses": losses, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
