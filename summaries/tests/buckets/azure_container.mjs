// Makes a container in Azurite: `node azure_container.mjs PORT NAME`. object_store reads and writes blobs only.
// The request is signed with Azurite's published account and key, by the scheme "Authorize with Shared Key".
import { createHmac } from "node:crypto";

const [port, name] = process.argv.slice(2);
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02" };
const canonicalHeaders = Object.entries(headers).map(([header, value]) => `${header}:${value}\n`).join("");
// The account is there twice: in the name of the resource and in its path.
const resource = `/${account}/${account}/${name}\nrestype:container`;
const text = `PUT\n\n\n\n\n\n\n\n\n\n\n\n${canonicalHeaders}${resource}`;
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");

const answer = await fetch(`http://127.0.0.1:${port}/${account}/${name}?restype=container`, {
    method: "PUT",
    headers: { ...headers, Authorization: `SharedKey ${account}:${signature}` },
});
if (answer.status !== 201) {
    console.error(answer.status, await answer.text());
    process.exit(1);
}
