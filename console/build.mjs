// Builds the console into instar/tools/console/assets (or the folder given): one entry, a chunk per page.
// The output depends on the sources alone, so that a test can build again and compare.
import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../instar/tools/console/assets");

const assets = join(target, "assets");

await rm(target, { recursive: true, force: true });
await mkdir(assets, { recursive: true });
const result = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: assets,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  metafile: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});

const outputs = Object.entries(result.metafile.outputs);
const entry = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
if (entry === undefined) throw new Error("build: no entry");
const name = (path) => path.split("/").at(-1);
const [script, { cssBundle }] = entry;
const page = await readFile(join(here, "src/index.html"), "utf8");
await writeFile(
  join(target, "index.html"),
  page.replace("{script}", name(script)).replace("{style}", name(cssBundle)),
);
await writeFile(join(assets, "icon.svg"), await readFile(join(here, "src/icon.svg")));

// The first page: the document, the style, the entry and what it imports at once, and Home's chunk.
const first = new Set([cssBundle, script]);
const follow = (path) => {
  for (const { path: next, kind } of result.metafile.outputs[path].imports)
    if (kind === "import-statement" && !first.has(next)) {
      first.add(next);
      follow(next);
    }
};
follow(script);
const home = outputs.find(([, output]) => output.entryPoint?.endsWith("pages/home/home.tsx"));
if (home !== undefined) {
  first.add(home[0]);
  follow(home[0]);
}
const compressed = async (path) => gzipSync(await readFile(join(assets, name(path)))).length;
const sizes = await Promise.all([...first].map(compressed));
const all = await Promise.all((await readdir(assets)).map(compressed));
const sum = (numbers) => numbers.reduce((left, right) => left + right, 0);
console.log(`console: first page ${sum(sizes)} bytes compressed, all of it ${sum(all)}`);
if (sum(sizes) > 60_000) throw new Error("build: the first page is above 60,000 bytes");
