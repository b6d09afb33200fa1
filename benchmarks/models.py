"""Steps of models that several benchmarks run: orbits, pendulums, oscillators, chains of masses."""

from hawk import Int32, Mutable, Param, Scalar, Terminated, Vector, kernel
from hawk import math as hm


def pull(s):
    r2 = s[0] * s[0] + s[1] * s[1]
    w = -1.0 / (r2 * hm.sqrt(r2))
    return hm.vec(s[2], s[3], w * s[0], w * s[1])


def rk4(slope, s, dt):
    """One step of the classical Runge-Kutta method."""
    k1 = slope(s)
    k2 = slope(s + dt / 2 * k1)
    k3 = slope(s + dt / 2 * k2)
    k4 = slope(s + dt * k3)
    return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@kernel
def orbit(s: Vector[4], dt: Param, after: Mutable[Vector[4]]):
    """A step of two bodies in the plane."""
    after = rk4(pull, s, dt)


@kernel
def pendulum(
    dt: Param,
    friction: Param,
    t_end: Scalar,
    angle: Mutable[Scalar],
    speed: Mutable[Scalar],
    t: Mutable[Scalar],
    over: Terminated,
):
    """An Euler step, until a time of the sample's own."""
    angle, speed = angle + dt * speed, speed - dt * (hm.sin(angle) + friction * speed)
    t = t + dt
    over = t >= t_end


@kernel
def oscillator(
    stiffness: Scalar,
    friction: Scalar,
    last: Int32,
    dt: Param,
    s: Mutable[Vector[2]],
    step: Mutable[Int32],
    over: Terminated,
):
    """A Runge-Kutta step of a damped oscillator, for a number of steps of the sample's own."""
    s = rk4(lambda s: hm.vec(s[1], -stiffness * s[0] - friction * s[1]), s, dt)
    step = step + 1
    over = step >= last


@kernel
def chain(spring: Param, dt: Param, p: Mutable[Vector[8]]):
    """Four masses in a row, held by springs: positions, then speeds. A step that keeps the energy bounded."""
    x, v = p[:4], p[4:]
    left, right = hm.vec(0.0, x[0], x[1], x[2]), hm.vec(x[1], x[2], x[3], 0.0)
    v = v + dt * spring * (left + right - 2.0 * x)
    x = x + dt * v
    p = hm.vec(x[0], x[1], x[2], x[3], v[0], v[1], v[2], v[3])
