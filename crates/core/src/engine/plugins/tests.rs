use super::*;
use crate::engine::Extension;

fn names(app: &App) -> Vec<&str> {
    let plugins = app.world().resource::<Inventory>().plugins();
    plugins.iter().map(|plugin| plugin.name.as_str()).collect()
}

#[test]
fn the_inventory_holds_what_is_in_the_app_and_nothing_else() {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded().build().disable::<GovernorPlugin>());
    let mut inventory = app.world_mut().resource_mut::<Inventory>();
    inventory.add("frost", "0.3.0", "stops the growth of seeds in winter");

    let names = names(&app);

    assert_eq!(names.len(), 12, "of 14 two only record, one is disabled, one is new");
    assert!(names.contains(&"LearnerPlugin"));
    assert!(!names.contains(&"GovernorPlugin"));
    assert_eq!(names.last(), Some(&"frost"));
}

#[test]
fn every_plugin_of_a_recorded_run_is_known() {
    let extension = Extension::default();
    let plugins = &extension.names().unwrap().plugins;

    assert_eq!(plugins.len(), 14);
    assert!(plugins.iter().all(|plugin| plugin.name.ends_with("Plugin")));
}
