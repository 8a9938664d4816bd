/** The programs of workers as text: scripts/build/view.mjs puts them in, so that the page is one file. */
declare module "virtual:*" {
  const source: string;
  export default source;
}
