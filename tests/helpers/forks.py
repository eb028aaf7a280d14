"""Fork while other threads sample and compile; exits with 1 if a child that samples hangs.

How many forks is the first argument; how many of them hung is printed.
"""

import os
import sys
import threading
import time

import numpy as np

from bayesmf import sample

X = np.random.default_rng(0).normal(size=(30, 20))
MODELS = ("GGG", "GGGA", "GLL", "GGGW")
stop = threading.Event()


def work():
    k = 0
    while not stop.is_set():
        name = MODELS[k % len(MODELS)]
        sample(X, name, 3, draws=10, burn_in=5, chains=2, n_jobs=2, random_state=k)
        k += 1


def child_ends(k):
    """Whether a child that samples comes to its end."""
    pid = os.fork()
    if not pid:
        sample(X, MODELS[k % len(MODELS)], 2, draws=5, burn_in=2, chains=2, n_jobs=2)
        os._exit(0)
    for _ in range(1200):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.05)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


if __name__ == "__main__":
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    ends = []
    for k in range(int(sys.argv[1])):
        time.sleep(0.1)
        ends.append(child_ends(k))
    stop.set()
    for thread in threads:
        thread.join()
    print(f"{len(ends)} forks, {ends.count(False)} hangs")
    sys.exit(not all(ends))
