/** Gives what `make` makes for a key; the last `most` of them are kept. */
export function recently<K, V>(most: number): (key: K, make: () => V) => V {
  const kept = new Map<K, V>();
  return (key, make) => {
    const value = kept.get(key) ?? make();
    kept.delete(key);
    kept.set(key, value);
    for (const oldest of kept.keys()) if (kept.size > most) kept.delete(oldest);
    return value;
  };
}
