/** The agent's listeners: opened at the start, and again if that failed or the socket was deleted. */

import { messageOf } from "../model/errors.ts";
import type { HttpServer } from "./http/server.ts";
import type { Log } from "./log.ts";

/** Until then an agent whose run directory was emptied is unreachable; a check costs one lstat. */
const LOOK_MS = 5_000;

export interface Place {
  /** Such as `control socket`. */
  readonly name: string;
  readonly open: () => Promise<HttpServer>;
}

interface Listener extends Place {
  server: HttpServer | null;
}

export class Listeners {
  readonly #log: () => Log;
  readonly #listeners: Listener[] = [];
  readonly #looking: ReturnType<typeof setInterval>;
  /** Openings in progress. */
  #opening: Promise<void> = Promise.resolve();
  #isBusy = false;

  constructor(log: () => Log, lookMs = LOOK_MS) {
    this.#log = log;
    this.#looking = setInterval(() => this.#look(), lookMs);
  }

  async add(place: Place): Promise<void> {
    const listener: Listener = { ...place, server: null };
    await this.#open(listener);
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
    await this.#opening;
    for (const { server } of this.#listeners) await server?.close();
  }

  #look(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#opening = this.#openAgain().finally(() => {
      this.#isBusy = false;
    });
  }

  async #openAgain(): Promise<void> {
    for (const listener of this.#listeners) {
      const { name, server } = listener;
      if (server?.isReachable() === true) continue;
      if (server !== null) {
        this.#log().warning(`the ${name} was deleted; crigc opens it again`);
        listener.server = null;
        await server.close();
      }
      await this.#open(listener);
    }
  }

  async #open(listener: Listener): Promise<void> {
    const topic = `listen ${listener.name}`;
    try {
      listener.server = await listener.open();
      this.#log().success(topic, `Opening the ${listener.name}`);
    } catch (thrown) {
      const words = `${messageOf(thrown)}; the agent continues without it and keeps trying`;
      this.#log().failure(topic, words);
    }
  }
}
