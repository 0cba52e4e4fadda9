"""An oracle of one's own: the losses of the two stacks agree within 1 %.

Called as  loss_oracle.py --subject TRACE [--reference TRACE] [--repeat TRACE] [--resumed TRACE].
Exit code 0: nothing found; 2: alarm; any other: no verdict. The last line printed that opens with
'{' says what: {"step": 3, "message": "...", "compared": 12}.
"""
import json
import sys

BAND = 0.01


def losses(path):
    with open(path, encoding="utf-8") as file:
        steps = [line for line in map(json.loads, file) if line["type"] == "step"]
    return {step["step"]: float(step["loss"]) for step in steps}


def main():
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    mine, theirs = losses(given["--subject"]), losses(given["--reference"])
    compared = 0
    for step in sorted(mine.keys() & theirs.keys()):
        compared += 1
        if not abs(mine[step] - theirs[step]) <= BAND * abs(theirs[step]):  # NaN is an alarm too
            message = f"loss {mine[step]:.6g}, reference {theirs[step]:.6g}"
            print(json.dumps({"step": step, "message": message, "compared": compared}))
            return 2
    print(json.dumps({"compared": compared}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
