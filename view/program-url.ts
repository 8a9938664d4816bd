/** The URL of a worker's program, which is a text in the page. */
export function programUrl(program: string): string {
  return URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
}
