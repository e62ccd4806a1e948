"""`python blocking.py gpt|mlp|inference`: runs the program and prints as JSON, for each iteration, the first with
what comes before it, the blocking calls: function, operation, line, count.
"""

import importlib
import json
import sys
from collections import Counter

from sluice_gpu import _client
from sluice_gpu._trace import Tracer


def blocking(trace):
    """`[{"function", "operation", "line", "count"}]` of a cell's count."""
    counts = Counter()
    for call in trace["calls"]:
        if call["blocking"]:
            counts[call["function"], call["operation"], call["line"]] += call["count"]
    return [
        {"function": function, "operation": operation, "line": line, "count": count}
        for (function, operation, line), count in sorted(counts.items())
    ]


def main(name):
    """Counts the program, iteration by iteration."""
    tracer = Tracer()
    tracer.start()
    found = []
    steps = importlib.import_module(name).program()
    running = True
    while running:
        tracer.cell_begins()
        running = next(steps, steps) is not steps
        tracer.cell_ends()
        if running:
            found.append(blocking(tracer.last_with_places()))
    tracer.stop()
    print(json.dumps({"program": name, "iterations": found}))


if __name__ == "__main__":
    main(sys.argv[1])
