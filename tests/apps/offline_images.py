"""A plugin of pytest: SciPy's example picture, which is downloaded elsewhere, is computed instead. It has edges, waves and noise."""
import numpy as np
import scipy.datasets


def picture():
    y, x = np.mgrid[0:512, 0:512]
    noise = np.random.default_rng(1).normal(0, 3, x.shape)
    squares = 30 * ((x // 64 + y // 64) % 2)
    return np.clip(128 + 60 * np.sin(x / 17) + 50 * np.cos(y / 23) + squares + noise, 0, 255).astype(np.uint8)


scipy.datasets.ascent = picture
