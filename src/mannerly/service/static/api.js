// Requests to the service, and its stream of live values.
// A token comes in the fragment of the address (#token=…), which no server sees, and is kept for this tab.

const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.get("token")) {
  sessionStorage.setItem("token", fragment.get("token"));
  history.replaceState(null, "", location.pathname + location.search);
}

const headers = () => {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}` } : {};
};

export class Refused extends Error {}

let reads = new AbortController(); // those under way are given up when the connection is lost

export async function call(method, path, body, signal) {
  const options = { method, headers: headers(), signal };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("The service cannot be reached.");
  }
  if (answer.status === 204) return null;
  const kind = answer.headers.get("Content-Type") || "";
  if (!answer.ok) {
    const problem = kind.includes("json") ? await answer.json() : {};
    throw Object.assign(new Refused(problem.detail || `The service answered ${answer.status}.`), { field: problem.field });
  }
  return answer.json();
}

export const get = (path) => call("GET", path, undefined, reads.signal);

// Save what a path returns as a file: a plain link could not send the token.
export async function save(path, name) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw new Refused((await answer.json()).detail);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Read server-sent events with `fetch`, so that the token stays out of the address.
// `told` gets every value; `state` gets true, or false and the seconds until the next try; `now` ends a wait early.
export async function stream(path, told, state, now) {
  for (let failures = 0; ; failures += 1) {
    try {
      const answer = await fetch(path, { headers: headers() });
      if (!answer.ok) throw new Refused(answer.status);
      state(true, 0);
      failures = 0;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const data = part.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
          if (data.length) told(JSON.parse(data.join("")));
        }
      }
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof TypeError)) console.error(error);
    }
    reads.abort();
    reads = new AbortController();
    const wait = Math.min(30, 1 + failures * 2);
    for (let left = wait; left > 0; left -= 1) {
      state(false, left);
      const isNow = await Promise.race([new Promise((next) => setTimeout(() => next(false), 1000)), now().then(() => true)]);
      if (isNow) break;
    }
  }
}
