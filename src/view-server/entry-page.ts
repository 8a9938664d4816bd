/**
 * The way into the page of `gguf-native view` without its token. The page keeps the token for its tab, and takes it out of the
 * address. When that address is loaded again, this leads to the page by what was kept.
 */

/** Where the page keeps the token: in `sessionStorage`, which only this tab and this port have. Cookies are for all ports. */
export const TOKEN_KEY = "gguf-native-view";

/** All that the server has at `/`. It has no secret, and it is short: it goes to everybody. */
export const entryPage = (): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gguf-native view</title>
<style>body { margin: 2rem; font: 1rem/1.5 system-ui, sans-serif }</style>
<main hidden>
<h1>gguf-native view</h1>
<p role="alert">This address works only in the tab that it comes from. Here, start from the one that the command printed.</p>
</main>
<noscript>This page needs JavaScript.</noscript>
<script>
let token;
try {
  [token] = sessionStorage.getItem("${TOKEN_KEY}")?.match(/^[\\w-]+$/) ?? [];
} catch {} // the browser keeps nothing
if (token === undefined) document.querySelector("main").hidden = false;
else location.replace("/" + token + "/" + location.search + location.hash);
</script>
</html>
`;
