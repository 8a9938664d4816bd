// Node with the libraries of Debian 11, the oldest system that a release is for: glibc 2.31.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";
import { fail, output, run } from "./commands.mjs";
import { fetchNode, makeLauncher, nodeVersions } from "./other-node.mjs";

const pool = "http://deb.debian.org/debian/pool/main/g";
const packages = [
  "glibc/libc6_2.31-13+deb11u11_amd64.deb",
  "gcc-10/libgcc-s1_10.2.1-6_amd64.deb",
  "gcc-10/libstdc++6_10.2.1-6_amd64.deb",
];

export async function oldDebianNode() {
  const folder = join(root, "build", "debian11");
  const system = join(folder, "root");
  mkdirSync(folder, { recursive: true });
  for (const name of packages) {
    const response = await fetch(`${pool}/${name}`);
    if (!response.ok) fail(`${response.url}: ${response.status} ${response.statusText}`);
    const file = join(folder, "package.deb");
    writeFileSync(file, Buffer.from(await response.arrayBuffer()));
    run("dpkg-deb", ["--extract", file, system]);
  }
  const libraries = ["lib", "usr/lib"].map((path) => join(system, path, "x86_64-linux-gnu"));
  const node = makeLauncher(folder, [
    ...[join(libraries[0], "ld-2.31.so"), "--library-path", libraries.join(":")],
    fetchNode("linux-x64", nodeVersions[20]),
  ]);
  const glibc = output(node, ["-p", "process.report.getReport().header.glibcVersionRuntime"]).trim();
  if (glibc !== "2.31") fail(`Node runs with glibc ${glibc} instead of Debian 11's`);
  return node;
}
