"""Trains a small network for a while, with a profiler server: PORT SECONDS."""
import sys
import time

import jax
import jax.numpy as jnp

port, seconds = int(sys.argv[1]), float(sys.argv[2])
jax.profiler.start_server(port)

key = jax.random.PRNGKey(0)
weights = [jax.random.normal(key, (256, 512)), jax.random.normal(key, (512, 10))]
images, labels = jax.random.normal(key, (64, 256)), jax.random.normal(key, (64, 10))


def loss_of(w):
    return jnp.mean((jnp.tanh(images @ w[0]) @ w[1] - labels) ** 2)


@jax.jit
def step(w):
    return jax.tree.map(lambda a, g: a - 0.01 * g, w, jax.grad(loss_of)(w))


weights = jax.block_until_ready(step(weights))
print("up", jax.__version__, flush=True)
number, end = 0, time.time() + seconds
while time.time() < end:
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        weights = jax.block_until_ready(step(weights))
    number += 1
    time.sleep(0.01)
