"""The kernels of these tests, few: compiling takes most of the time. A kernel keeps its plans."""

import hawk
from hawk import Int32, Mutable, Param, Scalar, Table, Terminated, Vector
from hawk import math as hm


@hawk.kernel
def pendulum(dt: Param, c: Param, t_final: Scalar, terminated: Terminated,
             x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar]):  # fmt: skip
    a = -hm.sin(x) - c * v
    x = x + dt * v
    v = v + dt * a
    t = t + dt
    terminated = t >= t_final


@hawk.kernel
def roots(p: Param, done: Terminated, x: Mutable[Scalar], y: Mutable[Scalar], total: Mutable[Scalar],
          count: Mutable[Int32]):  # fmt: skip
    """One step too many gives NaN."""
    y = hm.sqrt(x)
    total = total + p * y
    x = x - 1.0
    count = count + 1
    done = x < 0.0


@hawk.kernel
def halve(least: Param, done: Terminated, x: Mutable[Scalar]):
    x = 0.5 * x
    done = x < least


@hawk.kernel
def double(most: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + x
    done = x > most


@hawk.kernel
def halve_rows(done: Terminated, x: Mutable[Vector[3]]):
    x = x * 0.5
    done = x[0] < 2.0


@hawk.kernel
def decay(dt: Param, rate: Scalar, x: Mutable[Scalar]):
    """No stop rule."""
    x = x - dt * rate * x


@hawk.kernel
def walk(dt: Param, k: Param[Vector[2]], limit: Scalar, trips: Int32, force: Table["i":8], done: Terminated,
         p: Mutable[Vector[2]], energy: Mutable[Scalar], cell: Mutable[Int32]):  # fmt: skip
    """A little of everything: vectors, integers, a table, an inner loop, an `if`, a state that is only written."""
    i = hm.int32(hm.floor(hm.fmod(hm.abs(p[0]) * 3.0, 8.0)))
    f = force.at(i=i)
    pull = 0.0
    for n in range(trips):
        pull += hm.sin(p[1] + 0.1 * n)
        if pull > 2.0:
            break
    if p[1] > 0.0:
        p = hm.vec(p[0] + dt * k[0] * p[1], p[1] - dt * (f + pull))
    else:
        p = hm.vec(p[0] + dt * k[1] * f, p[1] + dt * hm.exp(-p[0] * p[0]))
    cell = cell + i
    energy = p[0] * p[0] + p[1] * p[1]
    done = energy > limit


@hawk.kernel(time="t", time_step="dt")
def fall(dt: Param, g: Param, done: Terminated, y: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar]):
    yn = y + dt * v - 0.5 * g * dt * dt
    v = v - g * dt
    y = yn
    t = t + dt
    done = yn < 0.0


@hawk.kernel(time="t", time_step="dt")
def fall_until(dt: Param, g: Param, t_end: Scalar, done: Terminated,
               y: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar]):  # fmt: skip
    y = y + dt * v - 0.5 * g * dt * dt
    v = v - g * dt
    t = t + dt
    done = t >= t_end


@hawk.kernel
def bounce(e: Scalar, v_in: Scalar, v: Mutable[Scalar]):
    v = -e * v_in


@hawk.kernel
def bounce_back(e: Scalar, v: Mutable[Scalar]):
    v = -e * v


@hawk.kernel(time="t", time_step="dt")
def reach(dt: Param, q: Scalar, done: Terminated, u: Mutable[Scalar], t: Mutable[Scalar]):
    u = u + dt
    t = t + dt
    done = u >= q


@hawk.kernel(time="t", time_step="dt")
def pass_by(dt: Param, q: Scalar, done: Terminated, u: Mutable[Scalar], t: Mutable[Scalar]):
    """As `reach`, but a step that ends at q does not stop."""
    u = u + dt
    t = t + dt
    done = u > q


@hawk.kernel(time="t", time_step="dt")
def cool(dt: Param, q: Param, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    x = x * hm.exp(-dt)
    t = t + dt
    done = x <= q


@hawk.kernel(time="t", time_step="dt")
def throw(dt: Param, g: Param, done: Terminated, x: Mutable[Scalar], y: Mutable[Scalar],
          vx: Scalar, vy: Mutable[Scalar], t: Mutable[Scalar]):  # fmt: skip
    x = x + dt * vx
    y = y + dt * vy - 0.5 * g * dt * dt
    vy = vy - g * dt
    t = t + dt
    done = vy < 0.0 and y < 0.0


def _pull(mu, x, y):
    r2 = x * x + y * y
    k = -mu / (r2 * hm.sqrt(r2))
    return k * x, k * y


@hawk.kernel(time="t", time_step="dt")
def orbit(dt: Param, mu: Param, nx: Scalar, ny: Scalar, done: Terminated, x: Mutable[Scalar], y: Mutable[Scalar],
          vx: Mutable[Scalar], vy: Mutable[Scalar], t: Mutable[Scalar]):  # fmt: skip
    """A step of Runge and Kutta's; stops where the direction (nx, ny) is passed, in the half plane it points to."""
    ax1, ay1 = _pull(mu, x, y)
    x2, y2, vx2, vy2 = x + 0.5 * dt * vx, y + 0.5 * dt * vy, vx + 0.5 * dt * ax1, vy + 0.5 * dt * ay1
    ax2, ay2 = _pull(mu, x2, y2)
    x3, y3, vx3, vy3 = x + 0.5 * dt * vx2, y + 0.5 * dt * vy2, vx + 0.5 * dt * ax2, vy + 0.5 * dt * ay2
    ax3, ay3 = _pull(mu, x3, y3)
    x4, y4, vx4, vy4 = x + dt * vx3, y + dt * vy3, vx + dt * ax3, vy + dt * ay3
    ax4, ay4 = _pull(mu, x4, y4)
    xn = x + dt / 6.0 * (vx + 2.0 * vx2 + 2.0 * vx3 + vx4)
    yn = y + dt / 6.0 * (vy + 2.0 * vy2 + 2.0 * vy3 + vy4)
    vx = vx + dt / 6.0 * (ax1 + 2.0 * ax2 + 2.0 * ax3 + ax4)
    vy = vy + dt / 6.0 * (ay1 + 2.0 * ay2 + 2.0 * ay3 + ay4)
    x, y = xn, yn
    t = t + dt
    done = nx * yn - ny * xn > 0.0 and nx * xn + ny * yn > 0.0


@hawk.kernel(time="t", time_step="dt")
def first_of(dt: Param, a: Scalar, b: Scalar, c: Scalar, done: Terminated, t: Mutable[Scalar]):
    t = t + dt
    done = t > a or t > b or t > c


@hawk.kernel(time="t", time_step="dt")
def nested(dt: Param, a: Scalar, b: Scalar, c: Scalar, done: Terminated, t: Mutable[Scalar]):
    t = t + dt
    done = (t > a and t > b) or not (t <= c)


@hawk.kernel(time="t", time_step="dt")
def parabola(dt: Param, q: Scalar, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    """Touches -q at t = 1."""
    t = t + dt
    x = (t - 1.0) * (t - 1.0) - q
    done = x <= 0.0


@hawk.kernel(time="t", time_step="dt")
def cubic(dt: Param, q: Scalar, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    t = t + dt
    x = -(t - 1.0) * (t - 1.0) * (t - 1.0) - q
    done = x <= 0.0


@hawk.kernel(time="t", time_step="dt")
def broken(dt: Param, q: Scalar, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    """Falls smoothly, but for a jump at q."""
    t = t + dt
    x = 1.0 - 0.1 * t
    if t > q:
        x = -x
    done = x < 0.0


@hawk.kernel(time="t", time_step="dt")
def quotient(dt: Param, q: Scalar, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    """A guard that is no number after a step of 0."""
    xn = hm.sin(t + dt)
    rate = (xn - hm.sin(t)) / dt
    x = xn
    t = t + dt
    done = rate < q


@hawk.kernel
def grow(dt: Param, x: Mutable[Scalar]):
    x = x + dt


@hawk.kernel
def large(x: Scalar, q: Scalar, done: Terminated):
    done = x >= q


@hawk.kernel(time="t", time_step="dt")
def tick(dt: Param, t: Mutable[Scalar]):
    t = t + dt


@hawk.kernel(time="t", time_step="dt")
def rise(dt: Param, g: Param, done: Terminated, y: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar]):
    vn = v - g * dt
    y = y + dt * v - 0.5 * g * dt * dt
    v = vn
    t = t + dt
    done = vn <= 0.0


@hawk.kernel(time="t", time_step="dt")
def grow_fast(dt: Param, a: Scalar, q: Scalar, done: Terminated, t: Mutable[Scalar]):
    t = t + dt
    done = hm.exp(a * t) > q


@hawk.kernel
def windowed(window: Param, x: Mutable[Scalar]):
    x = x + window


@hawk.kernel(time="t", time_step="dt")
def climb(dt: Param, wind: Table["i":8], top: Scalar, done: Terminated, x: Mutable[Scalar], h: Mutable[Scalar],
          t: Mutable[Scalar]):  # fmt: skip
    """An event after a step with a table and a loop that ends by its data."""
    w = wind.at(i=hm.int32(hm.floor(hm.fmod(hm.abs(x), 8.0))))
    s = 0.0
    for n in range(30):
        s = s + hm.exp(-0.1 * n) * w
        if s > 3.0:
            break
    x = x + dt * w
    h = h + dt * (1.0 + 0.1 * s)
    t = t + dt
    done = h > top
