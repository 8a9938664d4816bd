/**
 * Hugging Face's hub: URLs of the form `hf://OWNER/NAME/FILE`, and its access token. The token goes to the hub alone, never
 * to where it redirects, and only over connections that nobody else reads.
 */
import { invalidArgValue } from "../base/errors";
import { schemeOf } from "./url";

const HUB = "https://huggingface.co";

/** An hf: URL: what kind of repository, whose, its name, a revision, the path of the file in it. */
const HUB_URL =
  /^hf:\/\/(datasets\/|spaces\/|models\/)?([\w.-]+)\/([\w.-]+)(?:@((?:refs\/(?:convert|pr)\/)?[^/@]+))?\/(.+)$/i;

/** Environment variables, where there are any. */
function environment(): Readonly<Record<string, string | undefined>> {
  const { process } = globalThis as { process?: { env: Readonly<Record<string, string | undefined>> } };
  return process?.env ?? {};
}

/** The hub: HF_ENDPOINT where that is set, such as a mirror; undefined where that is no URL. */
function hubUrl(): URL | undefined {
  const endpoint = environment().HF_ENDPOINT || HUB;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  return url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" ? url : undefined;
}

/** Whether `url` is of the form hf://... */
export function isHubUrl(url: string): boolean {
  return schemeOf(url) === "hf";
}

/** `hf://OWNER/NAME` or `hf://OWNER/NAME@REVISION`: all files of a repository. */
export function isRepository(url: string): boolean {
  return /^hf:\/\/(?:models\/)?[^/]+\/[^/]+\/?$/i.test(url);
}

/** The https: URL of an hf: URL; any other is returned as it is. */
export function resolveHubUrl(url: string): string {
  if (!isHubUrl(url)) return url;
  const [, kind = "", owner, name, revision = "main", path] = HUB_URL.exec(url) ?? [];
  if (owner === undefined || name === undefined || path === undefined) {
    throw invalidArgValue("url", "must be of the form hf://OWNER/NAME[@REVISION]/FILE", url);
  }
  const repository = `${kind.toLowerCase().replace("models/", "")}${owner}/${name}`;
  // Decoded, since '%2e%2e' is '..' to a URL, and '..%2F' may be '../' to a server.
  const [branch, ...file] = [revision, ...path.split("/")].map(decoded) as [string, ...string[]];
  const names = [owner, name, branch, ...file].flatMap((part) => part.split("/"));
  if (names.some((part) => part === "." || part === "..")) {
    throw invalidArgValue("url", "must not leave its repository with '.' or '..'", url);
  }
  const place = [branch, ...file].map(encodeURIComponent).join("/");
  return `${hubFolder()}/${repository}/resolve/${place}`;
}

/** The URL of the list of all files of a repository, hf://OWNER/NAME[@REVISION]. */
export function repositoryTreeUrl(url: string): string {
  // Checked as that of a file is.
  const file = new URL(resolveHubUrl(`${url.replace(/\/+$/, "")}/x`));
  const [, repository, revision] =
    /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/x$/.exec(file.href.slice(hubFolder().length)) ?? [];
  return `${hubFolder()}/api/models/${repository}/tree/${revision}?recursive=true`;
}

/** The hub, without a slash at its end. */
function hubFolder(): string {
  const base = hubUrl();
  if (base === undefined) {
    const endpoint = environment().HF_ENDPOINT;
    throw invalidArgValue("HF_ENDPOINT", "must be an http: or https: URL without a user name", endpoint);
  }
  return base.origin + base.pathname.replace(/\/+$/, "");
}

/** A part of a URL without its percent signs; one with wrong ones is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What stands for a token in a header: letters that need no escape. */
const TOKEN = /^[\w.~+/=-]+$/;

/**
 * The value of the header `authorization` for a URL: HF_TOKEN for files of the hub, undefined elsewhere, without a token, and
 * over a connection that others can read.
 */
function hubAuthorization(url: URL): string | undefined {
  const token = environment().HF_TOKEN?.trim();
  if (!token || !isOfHub(url) || !isPrivate(url)) return undefined;
  // What is not valid may still be a secret: it is not repeated.
  if (!TOKEN.test(token)) throw new TypeError("HF_TOKEN has characters that no access token has");
  return `Bearer ${token}`;
}

/** The headers for a file: for one of the hub with its token, unless they have one. */
export function withHubToken(place: URL, headers: Headers): Headers {
  const authorization = headers.has("authorization") ? undefined : hubAuthorization(place);
  if (authorization === undefined) return headers;
  const all = new Headers(headers);
  all.set("authorization", authorization);
  return all;
}

/** Whether nobody between this machine and the server reads along. */
function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** Whether a URL is of the hub. */
export function isOfHub(url: URL): boolean {
  return url.origin === hubUrl()?.origin;
}
