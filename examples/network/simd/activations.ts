/** The functions in feed-forward networks. */
import { constant, exp, put } from "./lanes";

/** SwiGLU, into `gate`: silu(gate) * up. */
export function gatedBySilu(gate: usize, up: usize, length: i32): void {
  for (let left = length; left > 0; left -= 4) {
    const x = v128.load(gate);
    const silu = f32x4.div(x, f32x4.add(f32x4.splat(1), exp(f32x4.neg(x))));
    put(gate, f32x4.mul(silu, v128.load(up)), left);
    gate += 16;
    up += 16;
  }
}

/**
 * GeGLU, into `gate`: gelu(gate) * up. The one with tanh in place of the error function, as the models were trained.
 * x * (1 + tanh(z)) / 2 is x / (1 + e^(-2z)).
 */
export function gatedByGelu(gate: usize, up: usize, length: i32): void {
  for (let left = length; left > 0; left -= 4) {
    const x = v128.load(gate);
    const cubic = f32x4.add(f32x4.splat(1), f32x4.mul(f32x4.splat(0.044715), f32x4.mul(x, x)));
    // -2 sqrt(2 / pi)
    const z = f32x4.mul(f32x4.mul(f32x4.splat(-1.5957691), x), cubic);
    const gelu = f32x4.div(x, f32x4.add(f32x4.splat(1), exp(z)));
    put(gate, f32x4.mul(gelu, v128.load(up)), left);
    gate += 16;
    up += 16;
  }
}

/** The constants of GELU. */
const GELU = memory.data<f32>([
  1,
  0.34,
  0.12933424, // the polynomial
  0.18624151,
  -0.040149868,
  0.3309747,
  -0.10640291,
  -0.5,
]);

/**
 * Adds `bias` to each of `count` vectors of `x`, and then replaces each number by its GELU, the one with the error
 * function, which is off by 2.5e-7 at most. It is the greater of 0 and x, less |x| times what the normal distribution has
 * beyond |x|: e^(-x^2 / 2) times a polynomial in t = 1 / (1 + .34 |x|).
 */
export function addAndGelu(x: usize, count: i32, width: i32, bias: usize): void {
  for (let i = 0; i < count; i++) {
    let at: usize = 0;
    for (let left = width; left > 0; left -= 4) {
      const v = f32x4.add(v128.load(x + at), v128.load(bias + at));
      const size = f32x4.abs(v);
      const t = f32x4.div(
        constant(GELU, 0),
        f32x4.add(constant(GELU, 0), f32x4.mul(constant(GELU, 1), size)),
      );
      let p = constant(GELU, 6);
      p = f32x4.add(f32x4.mul(p, t), constant(GELU, 5));
      p = f32x4.add(f32x4.mul(p, t), constant(GELU, 4));
      p = f32x4.add(f32x4.mul(p, t), constant(GELU, 3));
      p = f32x4.add(f32x4.mul(p, t), constant(GELU, 2));
      const power = exp(f32x4.mul(f32x4.mul(size, size), constant(GELU, 7)));
      const less = f32x4.mul(size, f32x4.mul(f32x4.mul(p, t), power));
      put(x + at, f32x4.sub(f32x4.pmax(v, f32x4.splat(0)), less), left);
      at += 16;
    }
    x += 4 * width;
  }
}
