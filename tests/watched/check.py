"""The first thing that is wrong ends a test of sampling, with a reason.

Where the host of a virtual machine takes its processors away, samples come late and processor time counts what the
program did not get: what is wrong then is not judged (77, skipped), and said with the share that was taken."""
import subprocess, sys

TAKEN = 0.2
PATIENCE = 300  # seconds: the machine may be busy


def processor_time():
    """All that ran, and what the host took."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, stolen = map(int, stat.readline().split()[1:9])
    return user + nice + system + irq + softirq + stolen, stolen


began = last = processor_time()


def taken_since(then):
    ran, stolen = (now - before for now, before in zip(processor_time(), then))
    return stolen / max(1, ran)


def check(condition, what):
    global last
    if condition:
        last = processor_time()
        return
    taken = max(taken_since(began), taken_since(last))
    if taken > TAKEN:
        print(f"not judged: the host took {taken:.0%} of the processor time; {what}")
        sys.exit(77)
    print("failed:", what)
    sys.exit(1)


def run(command, **more):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **more)
    except subprocess.TimeoutExpired:
        check(False, "%s still runs after %d s" % (" ".join(command), PATIENCE))
