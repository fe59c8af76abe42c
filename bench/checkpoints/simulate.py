#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates the conversion of 1,000 shards on many nodes, from the measured rate of one task, and draws it as SVG.

    bench/checkpoints/simulate.py --task-rate 0.41 -o docs/checkpoints/nodes.svg

A task reads a shard and writes one of half the size. Its rate is the smallest of: what a task converts, its part of the
node's network, its part of the store. Tasks of one moment share alike. Every node works at a speed of its own, within
20 %, and a node in a hundred is lost halfway, whose shards begin again elsewhere: Ray's policy, and that of run-shard.
"""

import argparse
import pathlib
import random

SHARDS = 1000
READ_GB, WRITE_GB = 5.0, 2.5
NODES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# Name, colour, GB/s of a node's network, GB/s of the store for all.
SYSTEMS = (
    ("10 Gbit/s nodes, store of 10 GB/s", "#c44e52", 1.25, 10.0),
    ("25 Gbit/s nodes, store of 50 GB/s", "#4c72b0", 3.1, 50.0),
    ("100 Gbit/s nodes, store of 200 GB/s", "#55a868", 12.5, 200.0),
)
TASKS_PER_NODE = 8


def hours(nodes, task_rate, network, store, seed=1):
    """The time of the whole conversion: tasks advance together to the next moment at which one of them ends."""
    source = random.Random(seed)
    speeds = [source.uniform(0.8, 1.2) for _ in range(nodes)]
    lost = set(source.sample(range(nodes), nodes // 100))
    ideal = SHARDS * (READ_GB + WRITE_GB) / min(nodes * min(TASKS_PER_NODE * task_rate, network), store)
    waiting = SHARDS
    running = []  # [gigabytes left, node]
    free = [node for _ in range(TASKS_PER_NODE) for node in range(nodes)]
    now = 0.0
    while waiting or running:
        while waiting and free:
            running.append([READ_GB + WRITE_GB, free.pop(0)])
            waiting -= 1
        of_node = {}
        for _, node in running:
            of_node[node] = of_node.get(node, 0) + 1
        rates = [min(task_rate * speeds[node], network / of_node[node]) for _, node in running]
        total = sum(rates)
        if total > store:
            rates = [rate * store / total for rate in rates]
        step = min(left / rate for (left, _), rate in zip(running, rates))
        if lost and now + step > ideal / 2:
            gone, lost = lost, set()
            waiting += sum(node in gone for _, node in running)
            running = [task for task in running if task[1] not in gone]
            free = [node for node in free if node not in gone]
            continue
        now += step
        for task, rate in zip(running, rates):
            task[0] -= rate * step
        free += [node for left, node in running if left <= 1e-9]
        running = [task for task in running if task[0] > 1e-9]
    return now / 3600


def svg(task_rate):
    from math import log10

    width, height, left, bottom = 760, 420, 70, 60
    times = {name: [hours(n, task_rate, network, store) for n in NODES] for name, _, network, store in SYSTEMS}
    low, high = 0.01, 10 ** (int(log10(max(max(row) for row in times.values()))) + 1)

    def x(nodes):
        return left + (width - left - 20) * log10(nodes) / log10(NODES[-1])

    def y(value):
        return height - bottom - (height - bottom - 20) * (log10(value) - log10(low)) / (log10(high) - log10(low))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    tick = low
    while tick <= high * 1.01:
        label = f"{tick * 3600:.0f} s" if tick < 0.1 else f"{tick * 60:.0f} min" if tick < 1 else f"{tick:.0f} h"
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{label}</text>')
        tick *= 10
    for nodes in NODES:
        out.append(f'<text x="{x(nodes):.1f}" y="{height - bottom + 20}" text-anchor="middle">{nodes}</text>')
    title = f"{SHARDS} shards of {READ_GB:g} GB to half the size, {TASKS_PER_NODE} tasks of {task_rate:g} GB/s on a node"
    out.append(f'<text x="{width / 2}" y="{height - 18}" text-anchor="middle">nodes; {title}</text>')
    for row, (name, colour, _, store) in enumerate(SYSTEMS):
        points = " ".join(f"{x(n):.1f},{y(t):.1f}" for n, t in zip(NODES, times[name]))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        limit = SHARDS * (READ_GB + WRITE_GB) / store / 3600
        out.append(
            f'<line x1="{left}" x2="{width - 20}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="{colour}" '
            'stroke-dasharray="4 4"/>'
        )
        out.append(f'<text x="{width - 330}" y="{40 + 20 * row}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{width - 330}" y="{40 + 20 * len(SYSTEMS)}" fill="#555">dashed: the store alone</text>')
    return "\n".join([*out, "</svg>"]) + "\n", times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task-rate", type=float, required=True, help="GB/s, read and written, of one task on one core")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    given = parser.parse_args()
    drawing, times = svg(given.task_rate)
    given.output.write_text(drawing)
    print("minutes on nodes", *NODES, sep="\t")
    for name, row in times.items():
        print(name, *(f"{60 * value:.1f}" for value in row), sep="\t")


if __name__ == "__main__":
    main()
