/** What the attention needs besides products. */
import { exp, high, lanesBefore, low, put, sumOf } from "./lanes";

/**
 * Rotary position embedding, in place: rotates the first `pairs` pairs of each of the `headCount` heads of `count` tokens,
 * which have `width` numbers. `rotations` has for each token the cosines of its pairs, and then their sines. The numbers of a
 * pair are next to each other, or the second ones follow all first ones.
 */
export function rope(
  x: usize,
  count: i32,
  headCount: i32,
  width: i32,
  pairs: i32,
  adjacent: bool,
  rotations: usize,
): void {
  for (let token = 0; token < count; token++) {
    for (let head = 0; head < headCount; head++) {
      if (adjacent) rotateAdjacent(x, pairs, rotations);
      else rotateHalves(x, pairs, rotations);
      x += 4 * width;
    }
    rotations += 8 * pairs;
  }
}

function rotateAdjacent(x: usize, pairs: i32, cosines: usize): void {
  const sines = cosines + 4 * pairs;
  let at: usize = 0;
  for (let left = 2 * pairs; left > 0; left -= 4) {
    const c = v128.load64_zero(cosines + at);
    const s = v128.load64_zero(sines + at);
    const v = v128.load(x);
    const straight = f32x4.mul(v, v128.shuffle<i32>(c, c, 0, 0, 1, 1));
    const signed = f32x4.mul(v128.shuffle<i32>(s, s, 0, 0, 1, 1), f32x4(-1, 1, -1, 1));
    put(x, f32x4.add(straight, f32x4.mul(v128.shuffle<i32>(v, v, 1, 0, 3, 2), signed)), left);
    x += 16;
    at += 8;
  }
}

function rotateHalves(x: usize, pairs: i32, cosines: usize): void {
  const half: usize = 4 * pairs;
  for (let left = pairs; left > 0; left -= 4) {
    const c = v128.load(cosines);
    const s = v128.load(cosines + half);
    const a = v128.load(x);
    const b = v128.load(x + half);
    put(x, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)), left);
    put(x + half, f32x4.add(f32x4.mul(a, s), f32x4.mul(b, c)), left);
    x += 16;
    cosines += 16;
  }
}

/**
 * The weights of the attention: of each of `rows` rows of `columns` scores, e to the power of what they exceed the greatest
 * by, in a row of `width` numbers of `powers`, which may be `scores`; in `factors`, 1 over their sum. What a row does not
 * see is 0. `group` rows are of one token. The first token sees `seen` columns, the next one more, up to all; and of these
 * only the last `window`.
 */
export function softmax(
  scores: usize,
  rows: i32,
  columns: i32,
  group: i32,
  seen: i32,
  window: i32,
  powers: usize,
  width: i32,
  factors: usize,
): void {
  for (let row = 0; row < rows; row++) {
    const end = min(seen + row / group, columns);
    const begin = max(0, end - window);
    memory.fill(powers, 0, 4 * begin);
    const sum = exponentiate(scores + 4 * begin, end - begin, powers + 4 * begin);
    memory.fill(powers + 4 * end, 0, 4 * (width - end));
    store<f32>(factors, <f32>(1 / sum));
    scores += 4 * columns;
    powers += 4 * width;
    factors += 4;
  }
}

/** e to the power of what numbers exceed the greatest by, in `powers`. Returns their sum. */
function exponentiate(x: usize, length: i32, powers: usize): f64 {
  const greatest = f32x4.splat(greatestOf(x, length));
  let lows = f64x2.splat(0);
  let highs = f64x2.splat(0);
  for (let left = length; left > 0; left -= 4) {
    const power = exp(f32x4.sub(v128.load(x), greatest));
    put(powers, power, left);
    const summed = v128.and(power, lanesBefore(left));
    lows = f64x2.add(lows, low(summed));
    highs = f64x2.add(highs, high(summed));
    x += 16;
    powers += 16;
  }
  return sumOf(f64x2.add(lows, highs));
}

/** The greatest of some numbers. NaN does not count. */
export function greatestOf(x: usize, length: i32): f32 {
  let greatest = f32x4.splat(-Infinity);
  for (let left = length; left > 0; left -= 4) {
    const v = v128.bitselect(v128.load(x), f32x4.splat(-Infinity), lanesBefore(left));
    greatest = f32x4.pmax(greatest, v);
    x += 16;
  }
  const two = f32x4.pmax(greatest, v128.shuffle<i64>(greatest, greatest, 1, 0));
  const one = f32x4.pmax(two, v128.shuffle<i32>(two, two, 1, 0, 3, 2));
  return f32x4.extract_lane(one, 0);
}

/** The sum of e to the power of what numbers exceed `greatest` by. */
export function sumOfPowers(x: usize, length: i32, greatest: f32): f64 {
  let lows = f64x2.splat(0);
  let highs = f64x2.splat(0);
  for (let left = length; left > 0; left -= 4) {
    const power = v128.and(exp(f32x4.sub(v128.load(x), f32x4.splat(greatest))), lanesBefore(left));
    lows = f64x2.add(lows, low(power));
    highs = f64x2.add(highs, high(power));
    x += 16;
  }
  return sumOf(f64x2.add(lows, highs));
}

/**
 * Puts `rows` rows of `width` numbers, times their `factors`, to where they belong: `group` rows one after the other, and
 * `step` bytes from there the next.
 */
export function spread(
  from: usize,
  rows: i32,
  width: i32,
  factors: usize,
  to: usize,
  group: i32,
  step: usize,
): void {
  for (let row = 0; row < rows; row++) {
    const scales = f32x4.splat(load<f32>(factors));
    let target = to + <usize>(row / group) * step + 4 * (row % group) * width;
    let source = from;
    for (let left = width; left > 0; left -= 4) {
      put(target, f32x4.mul(v128.load(source), scales), left);
      source += 16;
      target += 16;
    }
    from += 4 * width;
    factors += 4;
  }
}
