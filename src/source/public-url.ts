/** URLs in messages. */

/** What may be shown of a URL: not its query, which may hold a signature. */
export function publicUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}
