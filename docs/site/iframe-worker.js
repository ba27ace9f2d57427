/* Search from disk. A browser starts no worker from file://, so the script of a worker runs in a hidden frame instead.
   A frame has the interface of a worker that the theme uses: messages in both directions, and importScripts. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const base = new URL(url, location)
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const load = (address) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script")
          script.src = new URL(address, base)
          script.onload = resolve
          script.onerror = reject
          inside.document.body.appendChild(script)
        })
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve())
      load(base).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach((data) => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.ready) this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }

    terminate() {
      this.frame.remove()
    }
  }
}
