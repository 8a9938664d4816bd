/** The program of the worker as text: scripts/build/view.mjs puts it in, so that the page is one file. */
declare module "virtual:worker" {
  const source: string;
  export default source;
}
