"""Trains a small network for a while, with a profiler server: PORT SECONDS."""
import sys
import time

import tensorflow as tf

port, seconds = int(sys.argv[1]), float(sys.argv[2])
tf.profiler.experimental.server.start(port)

model = tf.keras.Sequential([
    tf.keras.layers.Dense(512, activation="relu"),
    tf.keras.layers.Dense(10),
])
optimizer = tf.keras.optimizers.SGD(0.01)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
images = tf.random.normal((64, 256))
labels = tf.random.uniform((64,), maxval=10, dtype=tf.int32)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


step()
print("up", tf.__version__, flush=True)
number, end = 0, time.time() + seconds
while time.time() < end:
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step()
    number += 1
    time.sleep(0.01)
