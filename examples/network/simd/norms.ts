/** Norms. Sums are added in binary64: two numbers for the first and the third of each four, two for the others. */
import { high, lanesBefore, low, put, sumOf } from "./lanes";

/** Scales each of `count` vectors to a root mean square of 1, then multiplies it with `weight`; into `out`, which may be `x`. */
export function rmsNorm(x: usize, count: i32, width: i32, weight: usize, epsilon: f64, out: usize): void {
  for (let i = 0; i < count; i++) {
    let lows = f64x2.splat(0);
    let highs = f64x2.splat(0);
    for (let left = width, at = x; left > 0; left -= 4) {
      const v = v128.and(v128.load(at), lanesBefore(left));
      const l = low(v);
      const h = high(v);
      lows = f64x2.add(lows, f64x2.mul(l, l));
      highs = f64x2.add(highs, f64x2.mul(h, h));
      at += 16;
    }
    const mean = sumOf(f64x2.add(lows, highs)) / width;
    const scales = f32x4.splat(<f32>(1 / Math.sqrt(mean + epsilon)));
    let weights = weight;
    let from = x;
    let to = out;
    for (let left = width; left > 0; left -= 4) {
      put(to, f32x4.mul(f32x4.mul(v128.load(from), scales), v128.load(weights)), left);
      from += 16;
      to += 16;
      weights += 16;
    }
    x += 4 * width;
    out += 4 * width;
  }
}

/**
 * Adds to each of `count` vectors of `x` its own vector of `y`, and `bias`. Then shifts and scales it to a mean of 0 and a
 * variance of 1, multiplies it with `weight`, and adds `shift`.
 */
export function addAndNorm(
  x: usize,
  count: i32,
  width: i32,
  y: usize,
  bias: usize,
  weight: usize,
  shift: usize,
  epsilon: f64,
): void {
  for (let i = 0; i < count; i++) {
    let lows = f64x2.splat(0);
    let highs = f64x2.splat(0);
    let lowSquares = f64x2.splat(0);
    let highSquares = f64x2.splat(0);
    let at: usize = 0;
    for (let left = width; left > 0; left -= 4) {
      const sum = f32x4.add(f32x4.add(v128.load(x + at), v128.load(y + at)), v128.load(bias + at));
      put(x + at, sum, left);
      const v = v128.and(sum, lanesBefore(left));
      const l = low(v);
      const h = high(v);
      lows = f64x2.add(lows, l);
      highs = f64x2.add(highs, h);
      lowSquares = f64x2.add(lowSquares, f64x2.mul(l, l));
      highSquares = f64x2.add(highSquares, f64x2.mul(h, h));
      at += 16;
    }
    const mean = sumOf(f64x2.add(lows, highs)) / width;
    const variance = sumOf(f64x2.add(lowSquares, highSquares)) / width - mean * mean;
    const means = f32x4.splat(<f32>mean);
    // Rounding may make the variance of equal numbers negative.
    const scales = f32x4.splat(<f32>(1 / Math.sqrt((variance > 0 ? variance : 0) + epsilon)));
    at = 0;
    for (let left = width; left > 0; left -= 4) {
      const v = f32x4.mul(f32x4.sub(v128.load(x + at), means), scales);
      put(x + at, f32x4.add(f32x4.mul(v, v128.load(weight + at)), v128.load(shift + at)), left);
      at += 16;
    }
    x += 4 * width;
    y += 4 * width;
  }
}
