{
  const data = JSON.parse(document.getElementById("recorded").textContent);
  const scenes = { walks: walksScene, walls: wallsScene, cliques: cliquesScene, reveals: revealsScene, layers: layersScene };
  for (const [name, scene] of Object.entries(scenes)) scene(document.getElementById(name), data[name]);
}
