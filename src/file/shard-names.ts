/** File names of shards: `NAME-00001-of-00003.gguf`. */

const SHARD_SUFFIX = /-(\d{5})-of-(\d{5})(\.gguf)$/i;

/** The shard number in a file name. */
export interface ShardNumber {
  /** Counts from 1. */
  number: number;
  /** The number of shards. */
  count: number;
}

/** `-00001-of-00003.gguf` for `no` 0 of 3. */
export function shardSuffix(no: number, count: number): string {
  const digits = (value: number): string => String(value).padStart(5, "0");
  return `-${digits(no + 1)}-of-${digits(count)}.gguf`;
}

/** The shard number in a file name; undefined for a name without such an ending. */
export function shardNumber(name: string): ShardNumber | undefined {
  const match = SHARD_SUFFIX.exec(name);
  return match === null ? undefined : { number: Number(match[1]), count: Number(match[2]) };
}

/**
 * The path of shard `no` (from 0), given another shard's path; undefined if that is not the name of one of
 * `count`.
 */
export function siblingPath(path: string, no: number, count: number): string | undefined {
  if (shardNumber(path)?.count !== count) return undefined;
  return path.replace(SHARD_SUFFIX, (_suffix, _number, _count, extension: string) =>
    shardSuffix(no, count).replace(/\.gguf$/, extension),
  );
}
