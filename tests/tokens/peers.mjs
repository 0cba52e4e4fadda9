// Tokens of the trainer against a named peer of npm.
//   node peers.mjs NODE_MODULES tiktoken ENCODING TEXTS IDS      Rust tiktoken (WebAssembly)
//   node peers.mjs NODE_MODULES native TOKENIZER.json TEXTS IDS  Rust tokenizers of Hugging Face (native)
// Prints what it compared and the first differences; exits 1 when there are any. Called by tokens.sh.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, peer, what, textsPath, idsPath] = process.argv.slice(2);
const require = createRequire(`${folder}/x.js`);

async function encoder() {
    if (peer === "tiktoken") {
        const tokenizer = require("tiktoken").get_encoding(what);
        return (text) => tokenizer.encode(text, [], []);
    }
    const tokenizer = require("@anush008/tokenizers").Tokenizer.fromFile(what);
    return async (text) => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
}

const encode = await encoder();
const texts = readFileSync(textsPath);
const ids = readFileSync(idsPath);
let textAt = 0, idAt = 0, compared = 0, tokens = 0, different = 0, bytes = 0, spent = 0;
while (textAt < texts.length) {
    const size = texts.readUInt32LE(textAt);
    const text = texts.toString("utf8", textAt + 4, textAt + 4 + size);
    textAt += 4 + size;
    const count = ids.readUInt32LE(idAt);
    const ours = [];
    for (let i = 0; i < count; i++) ours.push(ids.readInt32LE(idAt + 4 + 4 * i));
    idAt += 4 + 4 * count;
    const before = process.cpuUsage();
    const theirs = Array.from(await encode(text));
    const after = process.cpuUsage(before);
    spent += after.user + after.system; // microseconds of all threads
    compared++;
    tokens += count;
    bytes += size;
    if (ours.length !== theirs.length || ours.some((id, i) => id !== theirs[i])) {
        if (different++ < 5) console.log(`differs: ${JSON.stringify(text)}\n  trainer ${ours}\n  ${peer} ${theirs}`);
    }
}
if (idAt !== ids.length) throw new Error("more ids than texts");
console.log(`${peer} ${what.split("/").slice(-3).join("/")}: ${compared} texts, ${tokens} tokens, ${different} texts differ; ` +
            `${(bytes / Math.max(spent, 1)).toFixed(1)} MB/s`);
process.exit(different === 0 && compared > 0 ? 0 : 1);
